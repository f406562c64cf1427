"""A server that speaks the wire formats of OpenAI, Gemini and Seedream on the loopback, and misbehaves on order.

    python tests/support/fake_services.py           prints its port; runs until its standard input ends
    with FakeServices() as server: ...              the same as a process of its own

OpenAI: /v1/images/generations, /v1/images/edits (multipart), /v1/chat/completions, /v1/files, /v1/batches.
Gemini: models/M:generateContent, models/M:batchGenerateContent, batches, their cancelling.
Seedream: /api/v3/images/generations.

It counts every request by its content (and idempotency key). Faults are a script: each is a dict with `fault`, optionally
`match` (text that the request's body must hold), `times` (default 1) and what the fault needs:

    status (code, body or message, headers)   hang (seconds)   cut (before the answer)   cut_half (in the answer)
    wrong_json   half_base64   wrong_size   no_image   not_image   wrong_schema   length   refusal   withheld   echo_key
    slow (seconds between pieces)   delay (seconds before a good answer)   lost (acts, then cuts: batch creation)

Answers in text are a script too: each is a dict with `text`, `match` and `times` as above; a request that none fits gets
something that fits its schema.

Control: GET /control/seen, POST /control/faults, /control/texts, /control/batches (how batches go), /control/reset.
"""

import asyncio
import base64
import hashlib
import json
import re
import struct
import subprocess
import sys
import time
import urllib.request
import zlib
from dataclasses import dataclass, field
from functools import lru_cache


@lru_cache(maxsize=512)
def png(width: int, height: int, shade: int, padding: int = 0) -> bytes:
    """A small valid PNG of one colour; padding: bytes of a private chunk, to make it as large as a real picture."""
    row = b"\0" + bytes((shade & 255, shade >> 8 & 255, shade >> 16 & 255)) * width
    ignored = _chunk(b"baLs", bytes(padding)) if padding else b""
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    pixels = _chunk(b"IDAT", zlib.compress(row * height, 1))
    return b"\x89PNG\r\n\x1a\n" + _chunk(b"IHDR", head) + ignored + pixels + _chunk(b"IEND", b"")


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


@dataclass
class Server:
    seen: dict = field(default_factory=dict)  # content hash -> {"count", "path", "body", "idempotency"}
    log: list = field(default_factory=list)
    faults: list = field(default_factory=list)
    texts: list = field(default_factory=list)
    batches: dict = field(default_factory=dict)
    files: dict = field(default_factory=dict)
    plan: dict = field(
        default_factory=dict
    )  # how batches go: status, part (of requests answered), polls before the end
    in_flight: int = 0
    most_in_flight: int = 0
    padding: int = 0
    tint: int = 0  # added to every picture's colour: another one for a request that was answered before
    keep_log: bool = True

    def note(self, path: str, text: str, headers: dict) -> None:
        digest = hashlib.sha256(f"{path}\n{text}".encode()).hexdigest()
        record = self.seen.setdefault(digest, {"count": 0, "path": path, "body": text[:2000], "idempotency": []})
        record["count"] += 1
        record["idempotency"].append(headers.get("idempotency-key"))

    def fault(self, text: str, path: str) -> dict | None:
        return next_of(self.faults, text, path)

    def text(self, request: dict, schema: dict | None) -> str:
        """The text of an answer: as scripted for this request, or else one that fits the schema."""
        scripted = next_of(self.texts, json.dumps(request, ensure_ascii=False)) if self.texts else None
        if scripted:
            return scripted["text"]
        return json.dumps(example(schema)) if schema else "an answer"


def next_of(script: list[dict], text: str, path: str = "") -> dict | None:
    """The first entry of a script that fits and is not used up; it counts as used then."""
    for entry in script:
        if entry.get("times", 1) > 0 and entry.get("match", "") in text and entry.get("path", "") in path:
            entry["times"] = entry.get("times", 1) - 1
            return entry
    return None


class Reply(Exception):
    def __init__(self, status: int, body, headers: dict | None = None):
        self.status, self.body, self.headers = status, body, headers or {}


class Cut(Exception):
    pass


STATE = Server()


async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            lines = head.decode("latin-1").split("\r\n")
            method, target, _ = lines[0].split(" ", 2)
            headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines[1:] if line)}
            if headers.get("transfer-encoding") == "chunked":
                body = b""
                while size := int(await reader.readline(), 16):
                    body += await reader.readexactly(size)
                    await reader.readline()
                await reader.readline()
            else:
                body = await reader.readexactly(int(headers.get("content-length", 0)))
            if not await respond(writer, method, target, headers, body):
                return
    except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
        pass
    finally:
        writer.close()


async def respond(writer, method: str, target: str, headers: dict, body: bytes) -> bool:
    server = STATE  # a reset replaces it while requests are in flight
    server.in_flight += not target.startswith("/control")
    server.most_in_flight = max(server.most_in_flight, server.in_flight)
    fault: dict = {}
    try:
        answer = await route(method, target, headers, body, fault)
        status, more = 200, {}
    except Reply as reply:
        status, answer, more = reply.status, reply.body, reply.headers
    except Cut:
        return False
    finally:
        server.in_flight -= not target.startswith("/control")
    data = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
    kind = "application/octet-stream" if isinstance(answer, bytes) and "content" in target else "application/json"
    lines = [f"HTTP/1.1 {status} X", f"Content-Type: {kind}", f"Content-Length: {len(data)}"]
    lines += [f"{name}: {value}" for name, value in more.items()]
    writer.write(("\r\n".join(lines) + "\r\n\r\n").encode())
    if fault.get("fault") == "cut_half":
        writer.write(data[: len(data) // 2])
        await writer.drain()
        return False
    if fault.get("fault") == "slow":
        for start in range(0, len(data), max(1, len(data) // 5)):
            writer.write(data[start : start + max(1, len(data) // 5)])
            await writer.drain()
            await asyncio.sleep(fault.get("seconds", 0.1))
    else:
        writer.write(data)
    await writer.drain()
    return True


async def route(method: str, target: str, headers: dict, body: bytes, fault_out: dict):
    path = target.split("?")[0]
    if path.startswith("/control"):
        return control(path, body)
    if "authorization" not in headers and "x-goog-api-key" not in headers:
        raise Reply(401, openai_error("invalid_api_key", "no key"))
    text = readable(headers, body)
    if STATE.keep_log:
        STATE.log.append([method, path])
    paid = method == "POST" and not path.startswith("/v1/files") and not path.endswith(":cancel")
    if paid and not path.endswith("/cancel"):
        STATE.note(path, text, headers)
    fault = STATE.fault(text, path) if paid or "/batches" in path or "/files" in path else None
    fault_out.update(fault or {})
    await misbehave(fault, headers)
    if path == "/v1/images/generations":
        return image_answer(json.loads(body), fault)
    if path == "/api/v3/images/generations":
        return seedream_answer(json.loads(body), fault)
    if path == "/v1/images/edits":
        return image_answer(multipart(headers, body), fault)
    if path == "/v1/chat/completions":
        return chat_answer(json.loads(body), fault)
    if path.startswith("/v1/files"):
        return files(method, path, headers, body)
    if path.startswith("/v1/batches") and "authorization" in headers:
        return batches(method, path, body, fault)
    if path.endswith(":generateContent"):
        return gemini_answer(json.loads(body), fault)
    if ":batchGenerateContent" in path or "/batches" in path:
        return gemini_batches(method, path, body, fault)
    raise Reply(404, openai_error("not_found", f"no {method} {path}"))


def readable(headers: dict, body: bytes) -> str:
    """The body as text; of multipart the parts without their random boundary."""
    if headers.get("content-type", "").startswith("multipart/form-data"):
        boundary = headers["content-type"].split("boundary=")[1]
        return body.decode("latin-1").replace(boundary, "")
    return body.decode("utf-8", "replace")


def multipart(headers: dict, body: bytes) -> dict:
    boundary = headers["content-type"].split("boundary=")[1].encode()
    values: dict = {"images": []}
    for part in body.split(b"--" + boundary)[1:-1]:
        head, _, data = part.strip(b"\r\n").partition(b"\r\n\r\n")
        name = re.search(rb'name="([^"]+)"', head)[1].decode()
        if name.startswith("image"):
            values["images"].append(hashlib.sha256(data).hexdigest())
        else:
            values[name] = data.decode()
    return values


async def misbehave(fault: dict | None, headers: dict) -> None:
    kind = (fault or {}).get("fault")
    if kind == "status":
        body = fault.get("body") or openai_error(fault.get("code", "error"), fault.get("message", "on order"))
        raise Reply(fault["status"], body, fault.get("headers"))
    if kind == "echo_key":
        key = headers.get("authorization", headers.get("x-goog-api-key", "")).removeprefix("Bearer ")
        raise Reply(
            fault.get("status", 400), openai_error(fault.get("code", "bad"), f"Your request with key {key} is bad")
        )
    if kind == "hang":
        await asyncio.sleep(fault.get("seconds", 3600))
        raise Cut
    if kind == "cut":
        raise Cut
    if kind == "delay":
        await asyncio.sleep(fault["seconds"])
    if kind == "wrong_json":
        raise Reply(200, b'{"data": [{"b64_json": ')


def openai_error(code: str, message: str) -> dict:
    return {"error": {"code": code, "message": message, "param": None, "type": "invalid_request_error"}}


def picture(text: str, size: str, fault: dict | None) -> str:
    kind = (fault or {}).get("fault")
    width, height = map(int, size.split("x")) if "x" in size else (64, 64)
    if kind == "wrong_size":
        width //= 2
    shade = int(hashlib.sha256(text.encode()).hexdigest()[:6], 16)
    data = b"this is no image" * 10 if kind == "not_image" else png(width, height, shade + STATE.tint, STATE.padding)
    encoded = base64.b64encode(data).decode()
    return encoded[: len(encoded) // 2 - 1] if kind == "half_base64" else encoded


def image_answer(request: dict, fault: dict | None) -> dict:
    text = 10 + len(request["prompt"]) // 4
    sent = {"text_tokens": text, "image_tokens": 300 * len(request.get("images", ()))}
    encoded = picture(json.dumps(request, sort_keys=True), request.get("size", "auto"), fault)
    return {
        "created": int(time.time()),
        "data": [] if (fault or {}).get("fault") == "no_image" else [{"b64_json": encoded}],
        "size": request.get("size"),
        "quality": request.get("quality"),
        "output_format": "png",
        "usage": {
            "input_tokens": sum(sent.values()),
            "input_tokens_details": sent,
            "output_tokens": 1000,
            "output_tokens_details": {"image_tokens": 1000, "text_tokens": 0},
            "total_tokens": sum(sent.values()) + 1000,
        },
    }


def seedream_answer(request: dict, fault: dict | None) -> dict:
    """One image; `withheld` puts an error in its place."""
    text = json.dumps(request, sort_keys=True)
    image = {"b64_json": picture(text, request["size"], fault), "size": request["size"]}
    if (fault or {}).get("fault") == "withheld":
        message = "The request failed because the output image may contain sensitive information."
        image = {"error": {"code": "OutputImageSensitiveContentDetected", "message": message}}
    return {
        "model": request["model"],
        "created": int(time.time()),
        "data": [] if (fault or {}).get("fault") == "no_image" else [image],
        "usage": {"generated_images": int("b64_json" in image), "output_tokens": 14400, "total_tokens": 14400},
    }


def chat_answer(request: dict, fault: dict | None) -> dict:
    kind = (fault or {}).get("fault")
    schema = ((request.get("response_format") or {}).get("json_schema") or {}).get("schema")
    content = STATE.text(request, schema)
    message = {"role": "assistant", "content": content, "refusal": None}
    if kind == "wrong_schema":
        message["content"] = json.dumps({"unexpected": 1})
    if kind == "not_json":
        message["content"] = content[:-1]
    if kind == "refusal":
        message |= {"content": None, "refusal": "I cannot help with that"}
    return {
        "id": "chat-1",
        "object": "chat.completion",
        "created": int(time.time()),
        "model": request["model"],
        "choices": [{"index": 0, "message": message, "finish_reason": "length" if kind == "length" else "stop"}],
        "usage": {"prompt_tokens": 20, "completion_tokens": 30, "total_tokens": 50},
    }


def example(schema: dict):
    """A value that fits a simple schema."""
    kind = schema.get("type", "string").lower()
    if "enum" in schema:
        return schema["enum"][0]
    if kind == "object":
        return {name: example(item) for name, item in schema.get("properties", {}).items()}
    if kind == "array":
        return [example(schema["items"]) for _ in range(schema.get("minItems", 0))]
    return {"integer": 1, "number": 0.5, "boolean": True, "null": None}.get(kind, "text")


def gemini_answer(request: dict, fault: dict | None) -> dict:
    kind = (fault or {}).get("fault")
    config = request.get("generationConfig", {})
    if kind == "refusal":
        return {"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}, "usageMetadata": {"promptTokenCount": 10}}
    if "IMAGE" in config.get("responseModalities", ()):
        encoded = picture(json.dumps(request, sort_keys=True), "64x64", fault)
        parts = [{"text": "thinking", "thought": True}, {"inlineData": {"mimeType": "image/png", "data": encoded}}]
        parts = parts[:1] if kind == "no_image" else parts
        received = [{"modality": "IMAGE", "tokenCount": 1120}]
    else:
        schema = config.get("responseJsonSchema") or config.get("responseSchema")
        text = STATE.text(request, schema)
        parts = [{"text": json.dumps({"unexpected": 1}) if kind == "wrong_schema" else text}]
        received = [{"modality": "TEXT", "tokenCount": 30}]
    finish = {"withheld": "IMAGE_SAFETY", "length": "MAX_TOKENS"}.get(kind, "STOP")
    candidate = {"content": {"role": "model", "parts": parts}, "finishReason": finish, "index": 0}
    if kind == "withheld":
        candidate["content"] = {"role": "model"}
    return {
        "candidates": [candidate],
        "modelVersion": "fake",
        "usageMetadata": {
            "promptTokenCount": 20,
            "promptTokensDetails": [{"modality": "TEXT", "tokenCount": 20}],
            "candidatesTokenCount": received[0]["tokenCount"],
            "candidatesTokensDetails": received,
            "thoughtsTokenCount": 5,
            "totalTokenCount": 25 + received[0]["tokenCount"],
        },
    }


def files(method: str, path: str, headers: dict, body: bytes):
    if method == "POST":
        boundary = headers["content-type"].split("boundary=")[1].encode()
        data = b""
        for part in body.split(b"--" + boundary)[1:-1]:
            head, _, content = part.partition(b"\r\n\r\n")
            if b'name="file"' in head:
                data = content.removesuffix(b"\r\n")
        return new_file(data)
    name = path.split("/")[3]
    if name not in STATE.files:
        raise Reply(404, openai_error("not_found", "no such file"))
    return STATE.files[name]


def new_file(data: bytes) -> dict:
    name = f"file-{len(STATE.files)}"
    STATE.files[name] = data
    return {
        "id": name,
        "object": "file",
        "bytes": len(data),
        "created_at": int(time.time()),
        "filename": "x.jsonl",
        "purpose": "batch",
        "status": "processed",
    }


def batches(method: str, path: str, body: bytes, fault: dict | None):
    parts = path.strip("/").split("/")
    if method == "POST" and len(parts) == 2:
        return new_batch(json.loads(body), fault)
    if method == "GET" and len(parts) == 2:
        return {"object": "list", "data": [public(b) for b in reversed(STATE.batches.values())], "has_more": False}
    batch = STATE.batches.get(parts[2])
    if batch is None:
        raise Reply(404, openai_error("not_found", "no such batch"))
    if len(parts) == 4 and parts[3] == "cancel":
        batch["status"] = "cancelled"
        return public(batch)
    advance(batch)
    return public(batch)


def public(batch: dict) -> dict:
    return {name: value for name, value in batch.items() if not name.startswith("_")}


def new_batch(request: dict, fault: dict | None) -> dict:
    name = f"batch_{len(STATE.batches)}"
    STATE.batches[name] = {
        "id": name,
        "object": "batch",
        "endpoint": request["endpoint"],
        "input_file_id": request["input_file_id"],
        "completion_window": "24h",
        "status": "validating",
        "created_at": int(time.time()),
        "metadata": request.get("metadata"),
        "output_file_id": None,
        "error_file_id": None,
        "errors": None,
        "_polls": 0,
        "_plan": STATE.plan.pop("next", None) or dict(STATE.plan),
    }
    if (fault or {}).get("fault") == "lost":
        raise Cut
    return public(STATE.batches[name])


def advance(batch: dict) -> None:
    """Ends after the planned number of polls; part: the share of its requests that are answered by then."""
    plan = batch["_plan"]
    batch["_polls"] += 1
    if batch["status"] not in ("validating", "in_progress") or batch["_polls"] <= plan.get("polls", 1):
        batch["status"] = "in_progress" if batch["status"] == "validating" else batch["status"]
        return
    batch["status"] = plan.get("status", "completed")
    if batch["status"] == "failed":
        batch["errors"] = {"object": "list", "data": [{"code": "invalid", "message": "the file is not right"}]}
        return
    lines = [json.loads(line) for line in STATE.files[batch["input_file_id"]].splitlines()]
    answered = int(len(lines) * plan.get("part", 1))
    output, errors = [], []
    for index, line in enumerate(lines):
        if index >= answered:
            error = {"code": "batch_expired", "message": "not executed in time"}
            errors.append({"id": f"r{index}", "custom_id": line["custom_id"], "response": None, "error": error})
            continue
        STATE.note(line["url"], json.dumps(line["body"], sort_keys=True), {})
        fault = STATE.fault(json.dumps(line["body"]), line["url"])
        if (fault or {}).get("fault") == "status":
            body = fault.get("body") or openai_error(fault.get("code", "error"), fault.get("message", "on order"))
            response = {"status_code": fault["status"], "request_id": "r", "body": body}
            errors.append({"id": f"r{index}", "custom_id": line["custom_id"], "response": response, "error": None})
            continue
        answer = chat_answer if "chat" in line["url"] else image_answer
        response = {"status_code": 200, "request_id": "r", "body": answer(line["body"], fault)}
        output.append({"id": f"r{index}", "custom_id": line["custom_id"], "response": response, "error": None})
    for name, rows in (("output_file_id", output), ("error_file_id", errors)):
        if rows:
            batch[name] = new_file(b"".join(json.dumps(row).encode() + b"\n" for row in rows))["id"]


def gemini_batches(method: str, path: str, body: bytes, fault: dict | None):
    if method == "POST" and ":batchGenerateContent" in path:
        request = json.loads(body)["batch"]
        name = f"batches/b{len(STATE.batches)}"
        STATE.batches[name] = {
            "_requests": request["inputConfig"]["requests"]["requests"],
            "_polls": 0,
            "_plan": STATE.plan.pop("next", None) or dict(STATE.plan),
            "name": name,
            "metadata": {"displayName": request["displayName"], "state": "BATCH_STATE_PENDING", "model": "m"},
        }
        if (fault or {}).get("fault") == "lost":
            raise Cut
        return public(STATE.batches[name])
    if path.rstrip("/").endswith("/batches"):
        return {"operations": [public(batch) for batch in STATE.batches.values() if "name" in batch]}
    batch = STATE.batches["batches/" + path.rsplit("/", 1)[1].removesuffix(":cancel")]
    batch["_polls"] += 1
    metadata, plan = batch["metadata"], batch["_plan"]
    if batch["_polls"] > plan.get("polls", 1) and "output" not in metadata:
        metadata["state"] = f"BATCH_STATE_{plan.get('status', 'completed').upper()}".replace("COMPLETED", "SUCCEEDED")
        requests = batch["_requests"]
        rows = []
        for index, item in enumerate(requests):
            if index >= int(len(requests) * plan.get("part", 1)):
                rows.append({"metadata": item["metadata"], "error": {"code": 4, "message": "not executed in time"}})
            else:
                STATE.note("gemini batch", json.dumps(item["request"], sort_keys=True), {})
                fault = STATE.fault(json.dumps(item["request"]), "gemini batch")
                rows.append({"metadata": item["metadata"], "response": gemini_answer(item["request"], fault)})
        metadata["output"] = {"inlinedResponses": {"inlinedResponses": rows}}
        batch["done"] = True
    return public(batch)


def control(path: str, body: bytes):
    global STATE
    if path == "/control/seen":
        return {
            "seen": list(STATE.seen.values()),
            "log": STATE.log,
            "in_flight": STATE.in_flight,
            "most_in_flight": STATE.most_in_flight,
            "batches": [public(batch) for batch in STATE.batches.values()],
        }
    value = json.loads(body or b"null")
    if path == "/control/faults":
        STATE.faults[:] = value
    elif path == "/control/texts":
        STATE.texts[:] = value
    elif path == "/control/batches":
        STATE.plan.clear()
        STATE.plan.update(value)
    elif path == "/control/settings":
        for name, item in value.items():
            setattr(STATE, name, item)
    elif path == "/control/reset":
        STATE = Server()
    return {"ok": True}


class FakeServices:
    """The server as a process of its own, with its control."""

    def __enter__(self) -> "FakeServices":
        self._process = subprocess.Popen([sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.port = int(self._process.stdout.readline())
        self.url = f"http://127.0.0.1:{self.port}"
        return self

    def __exit__(self, *problem) -> None:
        self._process.stdin.close()
        self._process.wait(10)
        self._process.stdout.close()

    def control(self, path: str, value=None):
        data = json.dumps(value).encode() if path != "seen" else None
        with urllib.request.urlopen(f"{self.url}/control/{path}", data, timeout=30) as answer:
            return json.load(answer)

    def faults(self, *faults: dict) -> None:
        self.control("faults", list(faults))

    def texts(self, *texts: dict) -> None:
        self.control("texts", list(texts))

    def batch_plan(self, **plan) -> None:
        self.control("batches", plan)

    def reset(self) -> None:
        self.control("reset")

    def seen(self) -> list[dict]:
        """Requests by content: count, path, body, idempotency keys."""
        return self.control("seen")["seen"]

    def counts(self) -> list[int]:
        return sorted(record["count"] for record in self.seen())


async def main() -> None:
    server = await asyncio.start_server(serve, "127.0.0.1", 0, limit=1 << 30, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    server.close()


if __name__ == "__main__":
    asyncio.run(main())
