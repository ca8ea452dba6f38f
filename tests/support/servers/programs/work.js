// An HTTP server on one thread: the path's number is how many times it hashes 4 KiB before it replies.
// usage: work.js PORT [http | http2 [CERTIFICATE KEY]]     http2: in the clear, or under TLS and HTTP/1.1 as well
const { createHash } = require('node:crypto');
const { readFileSync } = require('node:fs');
const { createServer, createSecureServer } = require(`node:${process.argv[3] ?? 'http'}`);

const [cert, key] = process.argv.slice(4).map((file) => readFileSync(file));
const create = cert ? (answer) => createSecureServer({ cert, key, allowHTTP1: true }, answer) : createServer;

const block = Buffer.alloc(4096, 'x');

create((request, response) => {
  let digest = '';
  for (let left = Number(request.url.slice(1)); left > 0; --left) {
    digest = createHash('sha256').update(block).update(digest).digest('hex');
  }
  response.end(digest);
}).listen(Number(process.argv[2]), '127.0.0.1');
