"""A server that speaks the part of S3's protocol that a reader needs: to list, to ask for sizes, to get bytes.

It serves a folder as buckets. Arrow's own client, the one that users have, is what talks to it.
"""

from __future__ import annotations

from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

CLOSED = "closed"  # a bucket that nobody may read


@contextmanager
def object_store(folder: Path):
    """The address of a store of what is in the folder, as long as the block lasts; `asked` are its requests."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_HEAD(self):
            self._answer(is_told=False)

        def do_GET(self):
            self._answer(is_told=True)

        def log_message(self, *_):
            pass

        def _answer(self, *, is_told):
            asked.append(f"{self.command} {self.path} {self.headers.get('Range', '')}")
            url = urlsplit(self.path)
            bucket, _, key = unquote(url.path).lstrip("/").partition("/")
            if bucket == CLOSED:
                return self._tell(403, b"", is_told)
            if not key and "list-type" in parse_qs(url.query):
                return self._tell(200, _listing(folder / bucket, parse_qs(url.query)), is_told)
            file = folder / bucket / key
            if not file.is_file():
                return self._tell(200 if not key and file.is_dir() else 404, b"", is_told)
            body, wanted = file.read_bytes(), self.headers.get("Range")
            if wanted is None:
                return self._tell(200, body, is_told)
            first, last = wanted.removeprefix("bytes=").split("-")
            return self._tell(206, body[int(first) : int(last) + 1], is_told)

        def _tell(self, status, body, is_told):
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.send_header("Last-Modified", "Tue, 17 Nov 2026 12:00:00 GMT")
            self.send_header("ETag", '"0"')
            self.end_headers()
            if is_told:
                self.wfile.write(body)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", asked
    finally:
        server.shutdown()
        server.server_close()


def _listing(bucket: Path, query) -> bytes:
    """What ListObjectsV2 says, all of it at once."""
    prefix, cut = query.get("prefix", [""])[0], "delimiter" in query
    names = sorted(str(file.relative_to(bucket)) for file in bucket.rglob("*") if file.is_file())
    rests = {name: name[len(prefix) :] for name in names if name.startswith(prefix)}
    below = sorted({prefix + rest.split("/")[0] + "/" for rest in rests.values() if cut and "/" in rest})
    told = [
        f"<Contents><Key>{escape(name)}</Key><Size>{(bucket / name).stat().st_size}</Size>"
        "<LastModified>2026-11-17T12:00:00.000Z</LastModified><ETag>0</ETag></Contents>"
        for name, rest in rests.items()
        if not (cut and "/" in rest)
    ]
    told += [f"<CommonPrefixes><Prefix>{escape(one)}</Prefix></CommonPrefixes>" for one in below]
    head = f"<Name>{escape(bucket.name)}</Name><Prefix>{escape(prefix)}</Prefix><KeyCount>{len(told)}</KeyCount>"
    return (
        '<?xml version="1.0" encoding="UTF-8"?><ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">'
        f"{head}<IsTruncated>false</IsTruncated>{''.join(told)}</ListBucketResult>"
    ).encode()
