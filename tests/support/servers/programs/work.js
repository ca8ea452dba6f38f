// An HTTP server on one thread: the path's number is how many times it hashes 4 KiB before it replies.
// usage: work.js PORT [http | http2]     http2: in the clear
const { createHash } = require('node:crypto');
const { createServer } = require(`node:${process.argv[3] ?? 'http'}`);

const block = Buffer.alloc(4096, 'x');

createServer((request, response) => {
  let digest = '';
  for (let left = Number(request.url.slice(1)); left > 0; --left) {
    digest = createHash('sha256').update(block).update(digest).digest('hex');
  }
  response.end(digest);
}).listen(Number(process.argv[2]), '127.0.0.1');
