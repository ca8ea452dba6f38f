// An HTTP server, a goroutine a connection: the path's number is how many times a request hashes 4 KiB, in new memory.
package main

import (
	"crypto/sha256"
	"log"
	"net/http"
	"os"
	"strconv"
)

func work(response http.ResponseWriter, request *http.Request) {
	times, err := strconv.Atoi(request.URL.Path[1:])
	if err != nil {
		http.NotFound(response, request)
		return
	}
	digest := make([]byte, sha256.Size)
	for ; times > 0; times-- {
		block := make([]byte, 4096)
		copy(block, digest)
		sum := sha256.Sum256(block)
		digest = sum[:]
	}
	if _, err := response.Write(digest); err != nil {
		log.Print(err)
	}
}

func main() {
	log.Fatal(http.ListenAndServe("127.0.0.1:"+os.Args[1], http.HandlerFunc(work)))
}
