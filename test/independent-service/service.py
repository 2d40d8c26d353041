"""The notification service once more, in another language, written from the interface document alone.

    python3 service.py '{"certificate": "cert.pem", "key": "key.pem", ...}'

Prints one line of JSON with its addresses (service, authorization server, control), and runs until standard input ends.
What the interface leaves open is a setting: see `DEFAULTS`. Needs nothing but Python's standard library.
"""

import base64
import gzip
import hashlib
import hmac
import http.client
import json
import re
import secrets
import ssl
import sys
import threading
import time
from email.utils import formatdate
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qsl, unquote, urlsplit
from uuid import uuid4

TYPES = ("behavioral", "call-score", "conversation-ai")
FAILURES_TO_END = 3
FORM = "application/x-www-form-urlencoded"
JSON = "application/json"

DEFAULTS = {
    "certificate": None,  # file with the certificate of both servers, in PEM
    "key": None,  # file with its private key, in PEM
    "callbackAuthority": None,  # file with the authority of the receivers, in PEM
    "domain": "acme",
    "clientId": "client-7",
    "clientSecret": "s3cret",
    "username": "service-user",  # Basic credentials of subscription calls
    "password": "p4ssword",
    "tokenType": "Bearer",
    "expiresIn": 3600,
    "expiresInAsText": False,
    "prefix": "",  # before every path of the service
    # "id": where the subscription's id stands (path, query, form); "field": its name there; None: no such route.
    "unsubscribe": {"method": "DELETE", "path": "/api/subscriptions/{id}", "id": "path", "status": 204},
    "update": {"method": "PUT", "path": "/api/subscriptions/{id}", "id": "path", "status": 204},
    "missing": 404,  # answer to an unsubscribe or update of a subscription that does not exist
    "unknown": {"status": 404},  # answer to every other path; "location" makes it a redirect
    "errors": "text",  # body of error answers: text, html, problem, empty
    "firstId": 1,
    "idStep": 1,
    "idAsText": [],  # where the id is sent as text: "answer", "callback"
    "created": 201,
    "formFirst": False,  # whether a create's form is looked at before its credentials
    "gzip": "never",  # of answers with a body: never, accepted (if the request allows it), errors (these only)
    "chunked": False,
    "close": False,  # after each answer
    "http": "1.1",
    "busy": None,  # {"status": 429, "retryAfter": "seconds" | "date"}: about every other request, each one once
    "permittedHeaders": [],  # request headers that callbacks repeat
}


class Refused(Exception):
    """An answer with an error status."""

    def __init__(self, status, words, headers=None):
        super().__init__(words)
        self.status = status
        self.headers = headers or {}


class Subscription:
    def __init__(self, number, types, users, callback_url, values):
        self.number = number
        self.types = types
        self.users = users
        self.callback_url = callback_url
        self.values = values
        self.failures = 0

    def shown(self):
        return {
            "id": self.number,
            "types": sorted(self.types),
            "users": sorted(self.users),
            "callbackUrl": self.callback_url,
            "values": self.values,
            "failures": self.failures,
        }


class Service:
    """The subscriptions and the tokens."""

    def __init__(self, settings):
        self.settings = settings
        self.lock = threading.RLock()
        self.subscriptions = {}
        self.next_id = settings["firstId"]
        self.tokens = {}
        self.signing_key = secrets.token_bytes(32)
        self.refused = set()
        self.was_refused = False
        self.requests = []
        authority = settings["callbackAuthority"]
        self.callback_tls = ssl.create_default_context(cafile=authority)

    # --- interface, 4.1

    def token(self, request):
        expected = basic(self.settings["clientId"], self.settings["clientSecret"])
        if request.headers.get("Authorization") != expected:
            raise Refused(401, "unknown client or wrong secret", {"WWW-Authenticate": "Basic"})
        if request.form().get("grant_type") != "client_credentials":
            raise Refused(400, "grant_type must be client_credentials")
        lifetime = self.settings["expiresIn"]
        token = self.signed({"azp": self.settings["clientId"], "exp": int(time.time()) + lifetime, "jti": str(uuid4())})
        with self.lock:
            self.tokens[token] = time.monotonic() + lifetime
        return 200, {"access_token": token, "token_type": self.settings["tokenType"], "expires_in": str(lifetime) if self.settings["expiresInAsText"] else lifetime}

    def signed(self, claims):
        parts = [encoded(json.dumps(part).encode()) for part in ({"alg": "HS256", "typ": "JWT"}, claims)]
        signature = hmac.digest(self.signing_key, ".".join(parts).encode(), hashlib.sha256)
        return ".".join([*parts, encoded(signature)])

    def authorize(self, request):
        given = request.headers.get("Authorization", "")
        if given == basic(self.settings["username"], self.settings["password"]):
            return
        scheme, _, token = given.partition(" ")
        if scheme.lower() != "bearer" or self.tokens.get(token, 0) < time.monotonic():
            raise Refused(401, "no valid credentials", {"WWW-Authenticate": "Bearer"})

    # --- interface, 3 and 4.2

    def wanted(self, request):
        """What a create asks for: types, users, callback URL, whether to recreate, and the associated values."""
        form = request.form()
        types = names_in(form, "notification_type")
        users = names_in(form, "username")
        if not types <= set(TYPES):
            raise Refused(400, "notification_type names an unknown type")
        callback_url = form.pop("callback_url", "")
        if urlsplit(callback_url).scheme != "https":
            raise Refused(400, "callback_url must be an https address")
        recreate = form.pop("recreateIfExists", "false").lower()
        if recreate not in ("true", "false"):
            raise Refused(400, "recreateIfExists must be true or false")
        return types, users, callback_url, recreate == "true", {**self.permitted(request), **form}

    def create(self, request):
        types, users, callback_url, recreate, values = self.wanted(request)
        with self.lock:
            for existing in list(self.subscriptions.values()):
                shared = existing.types & types and existing.users & users
                if not shared or existing.callback_url != callback_url:
                    continue
                is_same = existing.types == types and existing.users == users
                if not (is_same and recreate):
                    raise Refused(409, "a subscription of these users, types and this callback URL exists")
                del self.subscriptions[existing.number]
            number = self.next_id
            self.next_id += self.settings["idStep"]
            self.subscriptions[number] = Subscription(number, types, users, callback_url, values)
        return self.settings["created"], {"subscription_id": self.sent_id(number, "answer")}

    def permitted(self, request):
        permitted = {name.lower() for name in self.settings["permittedHeaders"]}
        return {name: value for name, value in request.headers.items() if name.lower() in permitted}

    def sent_id(self, number, place):
        return str(number) if place in self.settings["idAsText"] else number

    # --- interface, 4.3

    def unsubscribe(self, request, number):
        with self.lock:
            if self.subscriptions.pop(number, None) is None:
                raise Refused(self.settings["missing"], "no such subscription")
        return self.settings["unsubscribe"]["status"], None

    def update(self, request, number):
        route = self.settings["update"]
        values = request.form()
        values.pop(route.get("field"), None)
        values = {**self.permitted(request), **{name: str(value) for name, value in values.items()}}
        if not values:
            raise Refused(400, "nothing to change")
        with self.lock:
            if number not in self.subscriptions:
                raise Refused(self.settings["missing"], "no such subscription")
            self.subscriptions[number].values.update(values)
        return route["status"], None

    # --- interface, 2.3, 4.2 and 6

    def notify(self, username):
        """Delivers one behavioral notification to every subscription of this user to them; says what became of each."""
        with self.lock:
            subscriptions = list(self.subscriptions.values())
        matching = [each for each in subscriptions if username in each.users and "behavioral" in each.types]
        notification = {
            "id": str(uuid4()),
            "time": int(time.time() * 1000),
            "ver": "1.0",
            "type": "lowEnergyAgentOpened",
            "payload": {"callId": str(uuid4()), "username": username, "bTime": 21648, "nTime": 35912, "idx": 0},
        }
        return [self.deliver(each, notification) for each in matching]

    def deliver(self, subscription, notification):
        number = subscription.number
        body = {"subscriptionId": self.sent_id(number, "callback"), "notification": notification}
        status = self.post(subscription, json.dumps(body).encode())
        is_failure = status is None or not 200 <= status <= 299
        with self.lock:
            subscription.failures = subscription.failures + 1 if is_failure else 0
            has_ended = subscription.failures >= FAILURES_TO_END
            if has_ended:
                self.subscriptions.pop(number, None)
        return {"id": number, "notificationId": notification["id"], "status": status, "ended": has_ended}

    def post(self, subscription, body):
        url = urlsplit(subscription.callback_url)
        path = (url.path or "/") + (f"?{url.query}" if url.query else "")
        connection = http.client.HTTPSConnection(url.hostname, url.port, context=self.callback_tls, timeout=20)
        try:
            connection.request("POST", path, body, {"Content-Type": JSON, **subscription.values})
            return connection.getresponse().status
        except (OSError, http.client.HTTPException):
            return None
        finally:
            connection.close()

    # --- which operation a request is

    def operation(self, request):
        """The name of the operation, and what carries it out."""
        path = request.path_below(self.settings["prefix"])
        for name, carry_out in (("unsubscribe", self.unsubscribe), ("update", self.update)):
            route = self.settings[name]
            if route is None or route["method"] != request.command:
                continue
            pattern = re.escape(route["path"]).replace(re.escape("{id}"), r"(?P<id>[^/]+)")
            match = re.fullmatch(pattern, path or "")
            if match is not None:
                return name, lambda: carry_out(request, subscription_id(request, route, match))
        if path == "/api/subscriptions" and request.command == "POST":
            return "create", lambda: self.create(request)
        raise self.unknown(request)

    def unknown(self, request):
        unknown = self.settings["unknown"]
        headers = {"Location": unknown["location"]} if "location" in unknown else {}
        return Refused(unknown["status"], f"nothing is at {request.path}", headers)

    def be_busy(self, request):
        """Refuses a request as busy if the settings say so: none twice, and no two in a row."""
        busy = self.settings["busy"]
        if busy is None:
            return
        with self.lock:
            key = request.command, request.path, request.body
            is_refused = not self.was_refused and key not in self.refused
            self.was_refused = is_refused
            (self.refused.add if is_refused else self.refused.discard)(key)
        if is_refused:
            soon = formatdate(time.time() + 1, usegmt=True) if busy["retryAfter"] == "date" else "1"
            raise Refused(busy["status"], "too many requests", {"Retry-After": soon})


def names_in(form, field):
    names = form.pop(field, "").split(",")
    if "" in names:
        raise Refused(400, f"{field} is missing or has an empty name")
    return set(names)


def subscription_id(request, route, match):
    places = {
        "path": lambda: unquote(match["id"]),
        "query": lambda: request.query().get(route["field"]),
        "form": lambda: request.form().get(route["field"]),
    }
    found = places[route["id"]]()
    if re.fullmatch(r"-?\d+", str(found)) is None:
        raise Refused(400, "the subscription id is missing or no integer")
    return int(found)


def basic(name, secret):
    return "Basic " + base64.b64encode(f"{name}:{secret}".encode()).decode()


def encoded(part):
    return base64.urlsafe_b64encode(part).rstrip(b"=").decode()


class Handler(BaseHTTPRequestHandler):
    """What the three servers share: a request in, an answer out."""

    service: Service
    # Head and body in one packet.
    wbufsize = -1

    def answer(self):
        length = int(self.headers.get("Content-Length", 0))
        self.body = self.rfile.read(length)
        headers, content_type = {}, JSON
        try:
            status, content = self.result()
            body = b"" if content is None else json.dumps(content).encode()
        except Refused as refused:
            status, headers = refused.status, refused.headers
            content_type, body = self.error_body(status, str(refused))
        self.send(status, {"Content-Type": content_type, **headers} if body else headers, body)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = do_HEAD = answer

    def result(self):
        raise NotImplementedError

    def error_body(self, status, words):
        title = HTTPStatus(status).phrase
        if self.service.settings["errors"] == "html":
            return "text/html", f"<!DOCTYPE html><html><h1>{title}</h1><p>{words}</p></html>".encode()
        if self.service.settings["errors"] == "problem":
            problem = {"type": "about:blank", "title": title, "status": status, "detail": words}
            return "application/problem+json", json.dumps(problem).encode()
        if self.service.settings["errors"] == "empty":
            return "text/plain", b""
        return "text/plain", words.encode()

    def send(self, status, headers, body):
        settings = self.service.settings
        accepts = "gzip" in self.headers.get("Accept-Encoding", "")
        is_encoded = settings["gzip"] == "errors" and status >= 400
        if body and (is_encoded or (settings["gzip"] == "accepted" and accepts)):
            headers = {**headers, "Content-Encoding": "gzip"}
            body = gzip.compress(body)
        if settings["close"]:
            # BaseHTTPRequestHandler closes the connection when it sees this header.
            headers = {**headers, "Connection": "close"}
        if settings["chunked"] and body:
            headers = {**headers, "Transfer-Encoding": "chunked"}
            pieces = [body[start : start + 7] for start in range(0, len(body), 7)]
            body = b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in [*pieces, b""])
        elif status != 204:
            headers = {**headers, "Content-Length": str(len(body))}
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def path_below(self, prefix):
        path = urlsplit(self.path).path
        return path[len(prefix) :] if path.startswith(prefix) else None

    def query(self):
        return dict(parse_qsl(urlsplit(self.path).query))

    def form(self):
        if self.headers.get_content_type() != FORM:
            raise Refused(415, f"Content-Type must be {FORM}")
        return dict(parse_qsl(self.body.decode(), keep_blank_values=True))

    def log_message(self, format, *args):
        """Prints nothing: standard output has one line, the addresses."""


class SubscriptionHandler(Handler):
    def result(self):
        operation, status = "unknown", 0
        try:
            operation, carry_out = self.service.operation(self)
            self.service.be_busy(self)
            if operation == "create" and self.service.settings["formFirst"]:
                self.service.wanted(self)
            self.service.authorize(self)
            status, content = carry_out()
            return status, content
        except Refused as refused:
            status = refused.status
            raise
        finally:
            seen = {"operation": operation, "method": self.command, "path": self.path, "status": status}
            with self.service.lock:
                self.service.requests.append(seen)


class AuthorizationHandler(Handler):
    def result(self):
        domain = self.service.settings["domain"]
        if self.path != f"/auth/realms/{domain}/protocol/openid-connect/token" or self.command != "POST":
            raise self.service.unknown(self)
        self.service.be_busy(self)
        return self.service.token(self)


class ControlHandler(Handler):
    """For tests: what there is, and what is to happen."""

    def result(self):
        service = self.service
        match self.command, self.path.split("/")[1:]:
            case "GET", ["subscriptions"]:
                with service.lock:
                    return 200, [each.shown() for each in service.subscriptions.values()]
            case "DELETE", ["subscriptions", number]:
                with service.lock:
                    return 200, service.subscriptions.pop(int(number), None) is not None
            case "GET", ["requests"]:
                with service.lock:
                    return 200, service.requests
            case "POST", ["notifications"]:
                return 200, service.notify(json.loads(self.body)["username"])
        raise Refused(404, "no such control")


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, handler, tls=None):
        self.tls = tls
        super().__init__(("127.0.0.1", 0), handler)

    def get_request(self):
        connection, address = super().get_request()
        if self.tls is None:
            return connection, address
        # The handshake waits for the peer: it is left to the connection's own thread.
        return self.tls.wrap_socket(connection, server_side=True, do_handshake_on_connect=False), address

    def handle_error(self, request, client_address):
        # A peer may go away at any time. Anything else is a fault of this file, to be seen.
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)


def main():
    given = json.loads(sys.argv[1])
    unknown = sorted(given.keys() - DEFAULTS.keys())
    if unknown:
        sys.exit(f"unknown settings: {', '.join(unknown)}")
    settings = {**DEFAULTS, **given}
    service = Service(settings)
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(settings["certificate"], settings["key"])
    version = {"protocol_version": f"HTTP/{settings['http']}", "service": service}
    servers = {
        "baseUrl": Server(type("Subscriptions", (SubscriptionHandler,), version), tls),
        "authUrl": Server(type("Authorization", (AuthorizationHandler,), version), tls),
        "controlUrl": Server(type("Control", (ControlHandler,), {"service": service})),
    }
    addresses = {}
    for name, server in servers.items():
        threading.Thread(target=server.serve_forever, daemon=True).start()
        scheme = "https" if server.tls else "http"
        addresses[name] = f"{scheme}://127.0.0.1:{server.server_port}"
    addresses["baseUrl"] += settings["prefix"]
    print(json.dumps(addresses), flush=True)
    sys.stdin.read()


main()
