"""A real Label Studio: started on this machine, spoken to through its API, seen in a browser.

It lives in its own virtual environment under the cache folder, because it pins packages that
the project needs in other versions. ``make test-labelstudio`` installs it.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import socket
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page

from cradle_lib import paths

from .page import serving

ENVIRONMENT = "label-studio"
_SECONDS_TO_START = 600
# Milliseconds, for a machine that has other things to do.
_PATIENCE = 120_000


def executable() -> Path | None:
    """Finds the server, if it has been installed."""
    found = paths.cache() / ENVIRONMENT / "bin" / "label-studio"
    return found if found.is_file() else None


@dataclass(frozen=True)
class User:
    """Somebody with an account."""

    email: str
    password: str
    token: str


@dataclass(frozen=True)
class Server:
    """A running server with its first user."""

    address: str
    owner: User

    def call(self, method: str, path: str, body: Any = None) -> Any:
        """Calls the API and gives what it answers."""
        request = urllib.request.Request(
            self.address + path,
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={
                "Authorization": f"Token {self.owner.token}",
                "Content-Type": "application/json",
            },
        )
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                text = answer.read()
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{method} {path}: {error.code} {error.read()!r:.800}") from None
        return json.loads(text) if text else None

    def project(self, title: str, config: str, tasks: Path) -> tuple[int, dict[str, int]]:
        """Creates a project with tasks; gives its number, and those of the tasks by dialogue."""
        project = self.call("POST", "/api/projects", {"title": title, "label_config": config})["id"]
        content = json.loads(tasks.read_text(encoding="utf-8"))
        self.call("POST", f"/api/projects/{project}/import", content)
        return project, self.tasks(project)

    def export(self, project: int, target: Path) -> Path:
        """Exports a project to a file."""
        query = "exportType=JSON&download_all_tasks=true"
        content = self.call("GET", f"/api/projects/{project}/export?{query}")
        target.write_text(json.dumps(content), encoding="utf-8")
        return target

    def login(self, browser: Browser, user: User) -> Page:
        """Opens a window in which a user is logged in."""
        size = {"width": 1280, "height": 1000}
        page = browser.new_context(viewport=size, device_scale_factor=1.5).new_page()  # type: ignore[arg-type]
        page.goto(f"{self.address}/user/login")
        page.fill("input[name=email]", user.email)
        page.fill("input[name=password]", user.password)
        page.click("button[type=submit]")
        page.wait_for_url(_inside)
        return page

    def tasks(self, project: int) -> dict[str, int]:
        """Gives the numbers of a project's tasks by dialogue."""
        listed = self.call("GET", f"/api/tasks?project={project}&page_size=100&fields=all")["tasks"]
        return {task["data"]["dialogue_id"]: task["id"] for task in listed}


@contextmanager
def serve(folder: Path) -> Iterator[Server]:
    """Starts a server with an empty database by the command that the book prints, and ends it."""
    program = executable()
    assert program is not None
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    owner = User("owner@example.com", secrets.token_hex(8), secrets.token_hex(20))
    settings, arguments = serving()
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder), **settings}
    command = [
        str(program), *arguments, "--no-browser", "-p", str(port), "--enable-legacy-api-token",
        "--username", owner.email, "--password", owner.password, "--user-token", owner.token,
    ]  # fmt: skip
    log = folder / "server.log"
    with log.open("wb") as file:
        process = subprocess.Popen(command, env=environment, stdout=file, stderr=file, cwd=folder)
    server = Server(f"http://127.0.0.1:{port}", owner)
    try:
        for _ in range(_SECONDS_TO_START):
            if _answers(f"{server.address}/health"):
                break
            try:
                process.wait(timeout=1)
            except subprocess.TimeoutExpired:
                continue
            raise RuntimeError(f"Label Studio ended:\n{log.read_text()[-3000:]}")
        else:
            raise RuntimeError(f"Label Studio did not start:\n{log.read_text()[-3000:]}")
        yield server
    finally:
        process.terminate()
        process.wait(timeout=60)
        shutil.rmtree(folder / "study", ignore_errors=True)


def _inside(url: str) -> bool:
    return "/user/" not in url


def _answers(address: str) -> bool:
    try:
        with urllib.request.urlopen(address, timeout=5) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False
