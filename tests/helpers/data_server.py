"""A server on the loopback address that answers as data servers do, and as broken ones do."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Iterable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

Answer = Callable[[BaseHTTPRequestHandler], None]

#: OpenML's descriptions of a data set and of a task.
OPENML_DESCRIPTION, OPENML_TASK = (
    (Path(__file__).parent / "openml" / f"{name}.xml").read_text("utf-8")
    for name in ("description", "task")
)
HTML = b"<!DOCTYPE html>\n<html><body>Please sign in.</body></html>"


class DataServer:
    """Answers by path; everything else is 404."""

    def __init__(self) -> None:
        self.answers: dict[str, Answer] = {}
        self.asked: list[str] = []
        self.posted: list[tuple[str, bytes]] = []
        self.release = threading.Event()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                path = self.path.split("?")[0]
                outer.asked.append(path)
                outer.answers.get(path, outer.not_found)(self)

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                path = self.path.split("?")[0]
                outer.posted.append((path, body))
                outer.answers.get(f"POST {path}", outer.not_found)(self)

            def log_message(self, *args: object) -> None:
                """Keep the output of the tests clean."""

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.http.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.http.server_port}"
        self.thread = threading.Thread(target=self.http.serve_forever, args=(0.02,), daemon=True)
        self.thread.start()

    def close(self) -> None:
        self.release.set()
        self.http.shutdown()
        self.http.server_close()
        self.thread.join()

    def serve(self, path: str, body: bytes, status: int = 200, kind: str = "text/plain") -> str:
        self.answers[path] = lambda request: _send(request, body, status, kind)
        return self.url + path

    def html(self, path: str) -> str:
        return self.serve(path, HTML, kind="text/html")

    def truncated(self, path: str, body: bytes) -> str:
        """Promise all of the body and send half of it."""

        def answer(request: BaseHTTPRequestHandler) -> None:
            _head(request, 200, len(body), "text/plain")
            request.wfile.write(body[: len(body) // 2])
            request.close_connection = True

        self.answers[path] = answer
        return self.url + path

    def hang(self, path: str, first: bytes = b"") -> str:
        """Send nothing, or the head and some bytes, and then stay silent."""

        def answer(request: BaseHTTPRequestHandler) -> None:
            if first:
                _head(request, 200, 10 * len(first), "text/plain")
                request.wfile.write(first)
                request.wfile.flush()
            self.release.wait(30)

        self.answers[path] = answer
        return self.url + path

    def endless(
        self, path: str, chunk: bytes = b"1,2,red\n" * 4096, pause: float = 0.0, to: str = ""
    ) -> str:
        """Send a head without a length, and then the same chunk until the client leaves.

        The answer is a redirect if `to` is a path.
        """

        def answer(request: BaseHTTPRequestHandler) -> None:
            request.send_response(302 if to else 200)
            if to:
                request.send_header("Location", to)
            request.end_headers()
            self._repeat(request, chunk, pause)

        self.answers[path] = answer
        return self.url + path

    def endless_head(self, path: str) -> str:
        """Send the fields of a head, a byte at a time, until the client leaves."""

        def answer(request: BaseHTTPRequestHandler) -> None:
            request.wfile.write(b"HTTP/1.0 200 OK\r\nX-Field: ")
            self._repeat(request, b"x", 0.05)

        self.answers[path] = answer
        return self.url + path

    def _repeat(self, request: BaseHTTPRequestHandler, chunk: bytes, pause: float) -> None:
        request.close_connection = True
        try:
            while not self.release.wait(pause):
                request.wfile.write(chunk)
                request.wfile.flush()
        except OSError:
            """The client left."""

    def packed_body(self, path: str, body: bytes) -> str:
        """Send a body that the client is to unpack by gzip, asked for or not."""

        def answer(request: BaseHTTPRequestHandler) -> None:
            request.send_response(200)
            request.send_header("Content-Encoding", "gzip")
            request.send_header("Content-Length", str(len(body)))
            request.end_headers()
            try:
                request.wfile.write(body)
            except OSError:
                """The client left."""

        self.answers[path] = answer
        return self.url + path

    def not_found(self, request: BaseHTTPRequestHandler) -> None:
        _send(request, b"<html>404</html>", 404, "text/html")

    def openml(
        self,
        data_id: int,
        arff: bytes,
        md5: str | None = None,
        target: str = "class",
        more: str = "",
        parquet: bytes = b"",
    ) -> str:
        """Serve a data set as OpenML's REST interface does: a description, then the ARFF file.

        With `parquet`, there is a Parquet file and no ARFF file.
        """
        where = "" if parquet else self.serve(f"/data/v1/download/{data_id}/set.arff", arff)
        other = self.serve(f"/datasets/{data_id}/set.pq", parquet)
        description = OPENML_DESCRIPTION.format(
            id=data_id,
            url=where,
            parquet=other,
            md5=md5 or hashlib.md5(arff).hexdigest(),
            target=target,
            more=more,
        )
        self.serve(f"/api/v1/xml/data/{data_id}", description.encode(), kind="text/xml")
        return f"/data/v1/download/{data_id}/set.arff"

    def openml_task(
        self,
        task_id: int,
        data_id: int,
        splits: bytes,
        target: str = "class",
        kind: str = "Supervised Classification",
    ) -> str:
        """Serve a task as OpenML's REST interface does: a description, then the splits."""
        path = f"/api_splits/get/{task_id}/Task_{task_id}_splits.arff"
        description = OPENML_TASK.format(
            id=task_id, data_id=data_id, target=target, kind=kind, url=self.serve(path, splits)
        )
        self.serve(f"/api/v1/xml/task/{task_id}", description.encode(), kind="text/xml")
        return path

    def openml_uploads(self, flow: bytes) -> None:
        """Take flows and runs as OpenML does; `flow` is the flow that is new on the server."""
        stated = b"<oml:id>5</oml:id><oml:uploader>1</oml:uploader><oml:version>1</oml:version>"
        stated += b"<oml:upload_date>2026-01-01T00:00:00</oml:upload_date>"
        head, end = b' xmlns:oml="http://openml.org/openml">', flow.index(b">") + 1
        answers = {
            "POST /api/v1/xml/flow/exists": b"<oml:flow_exists%s<oml:exists>false</oml:exists>"
            b"<oml:id>-1</oml:id></oml:flow_exists>" % head,
            "POST /api/v1/xml/flow/": b"<oml:upload_flow%s<oml:id>5</oml:id></oml:upload_flow>"
            % head,
            "/api/v1/xml/flow/5": flow[:end] + stated + flow[end:],
            "POST /api/v1/xml/run/": b"<oml:upload_run%s<oml:run_id>9</oml:run_id>"
            b"</oml:upload_run>" % head,
        }
        for path, body in answers.items():
            self.serve(path, body, kind="text/xml")

    def openml_suite(self, suite_id: int, tasks: Iterable[int]) -> None:
        """Serve the list of tasks of a suite."""
        ids = "".join(f"<oml:task_id>{task}</oml:task_id>" for task in tasks)
        head = f'<oml:study xmlns:oml="http://openml.org/openml"><oml:id>{suite_id}</oml:id>'
        data = "<oml:data><oml:data_id>1</oml:data_id></oml:data>"
        body = f"{head}{data}<oml:tasks>{ids}</oml:tasks></oml:study>"
        self.serve(f"/api/v1/xml/study/{suite_id}", body.encode(), kind="text/xml")

    def openml_features(
        self, data_id: int, types: Mapping[str, str], ignored: str = "", values: Iterable[str] = ()
    ) -> None:
        """Serve the types of the columns of a data set, and the values of nominal columns."""
        listed = "".join(f"<oml:nominal_value>{value}</oml:nominal_value>" for value in values)
        features = "".join(
            f"<oml:feature><oml:index>{k}</oml:index><oml:name>{name}</oml:name>"
            f"<oml:data_type>{kind}</oml:data_type>{listed if kind == 'nominal' else ''}"
            "<oml:number_of_missing_values>0</oml:number_of_missing_values>"
            f"<oml:is_ignore>{str(name == ignored).lower()}</oml:is_ignore>"
            "<oml:is_row_identifier>false</oml:is_row_identifier></oml:feature>"
            for k, (name, kind) in enumerate(types.items())
        )
        body = f'<oml:data_features xmlns:oml="http://openml.org/openml">{features}'
        body += "</oml:data_features>"
        self.serve(f"/api/v1/xml/data/features/{data_id}", body.encode(), kind="text/xml")


def _head(request: BaseHTTPRequestHandler, status: int, length: int, kind: str) -> None:
    request.send_response(status)
    request.send_header("Content-Type", kind)
    request.send_header("Content-Length", str(length))
    request.end_headers()


def _send(request: BaseHTTPRequestHandler, body: bytes, status: int, kind: str) -> None:
    _head(request, status, len(body), kind)
    request.wfile.write(body)


def files_in(folder: Path) -> list[str]:
    """Return the files below a folder, temporary ones too."""
    return sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file())
