# The two commands are `make book` and `make test`. Both set up what they need in .venv.
PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
# Install only files whose hashes are in a lock file, which lists all dependencies.
HASHED := --require-hashes --no-deps
# uv is much faster than pip, but does not read pip's settings. If uv fails (for example because a mirror
# is configured only for pip), pip installs.
UV := $(BIN)/uv pip install --quiet --no-cache --python
define install
{ $(PIP) $(HASHED) --only-binary :all: --requirement requirements/uv.lock && $(UV) $(BIN)/python $(HASHED) $(1); } \
  || { echo "uv could not install; trying pip:" && $(PIP) $(HASHED) $(1); }
endef
WORKERS ?= 2
# If it were set, each process of the tests would compile the library again.
unexport PYTHONDONTWRITEBYTECODE
LABEL_STUDIO := $(or $(CRADLE_CACHE),.cache)/label-studio

# Build the book in the active environment if it has the book's packages; otherwise print the reason.
ACTIVE := $(or $(VIRTUAL_ENV),$(CONDA_PREFIX))
ifneq ($(and $(ACTIVE),$(filter book,$(or $(MAKECMDGOALS),book))),)
ifneq ($(abspath $(ACTIVE)),$(abspath .venv))
WHY_NOT := $(shell "$(ACTIVE)/bin/python" tools/active_environment.py 2>&1 || echo "$(ACTIVE) has no Python")
ifeq ($(WHY_NOT),)
BOOK_BIN := $(ACTIVE)/bin
else
$(info Using .venv instead of the active environment: $(WHY_NOT).)
endif
endif
endif

# The programs of an environment name the folder in which it was made: in a copy of that folder they would run
# the other copy, and in a moved one they do not start.
MADE_IN := $(shell sed -n 's|^command = .* -m venv [^/]*/|/|p' .venv/pyvenv.cfg 2>/dev/null)
ifneq ($(MADE_IN),$(if $(MADE_IN),$(abspath .venv)))
ifeq ($(filter clean help,$(MAKECMDGOALS)),)
$(error .venv was made as $(MADE_IN). Remove it (rm -r .venv) and run the same command again, which makes it here)
endif
endif

.PHONY: book test test-shipped test-hostile test-benchmarks test-gpu test-journeys test-slurm test-labelstudio \
  lint bench clean lock help

help:
	@echo "make book   build the report into book/_build/html (the first run installs what it needs)"
	@echo "make test   run the tests"
	@echo "make test-shipped   generate the shipped files again and compare them"
	@echo "make test-hostile   test with damaged files, prompt injections and kills (CRADLE_HOSTILE_CASES=20000: longer)"
	@echo "make test-benchmarks   run each benchmark on tiny data"
	@echo "make test-gpu   compare the engines on a GPU, and print a table for an issue"
	@echo "make test-journeys   walk the paths of users in fresh clones, from the first command to the page"
	@echo "make test-slurm   run shards on a real local SLURM (needs slurm-wlm, munge and root)"
	@echo "make test-labelstudio   annotate in a real Label Studio (installs 1 GB)"
	@echo "make lint   check style and types"
	@echo "make bench  compare the speed with other implementations"
	@echo "make clean  remove everything that can be generated again; keeps the answers of runs"

book: $(if $(BOOK_BIN),,.venv/.book)
	$(or $(BOOK_BIN),$(BIN))/jupyter-book build --warningiserror --keep-going book/

# Each file runs on one worker, because its tests share expensive fixtures (a site, a server). Files are not
# sorted by their number of tests, because the slowest files have few.
test: .venv/.dev
	$(BIN)/python -m pytest --numprocesses $(WORKERS) --dist loadfile --no-loadscope-reorder

test-shipped: .venv/.dev
	$(BIN)/python -m pytest -m shipped --numprocesses $(WORKERS) --dist loadfile

test-hostile: .venv/.dev
	$(BIN)/python -m pytest -m hostile --numprocesses $(WORKERS) --dist loadfile

test-benchmarks: .venv/.dev
	$(BIN)/python -m benchmarks --small

test-gpu: .venv/.dev
	$(BIN)/python -m benchmarks.bench_gpu

test-journeys: .venv/.dev
	$(BIN)/python -m pytest -m journeys tests/journeys tests/notebooks/test_documented_commands.py

test-slurm: .venv/.dev
	$(BIN)/python -m pytest -m slurm tests/extras/cluster

test-labelstudio: .venv/.dev $(LABEL_STUDIO)/bin/label-studio
	$(BIN)/python -m pytest -m labelstudio tests/extras/label_studio/test_label_studio.py

# Label Studio has too many dependencies to share an environment.
STUDIO := --constraint tests/extras/label_studio/label-studio.lock label-studio==1.23.2
$(LABEL_STUDIO)/bin/label-studio: tests/extras/label_studio/label-studio.lock | .venv/.dev
	$(BIN)/python -m venv $(LABEL_STUDIO)
	$(UV) $(LABEL_STUDIO)/bin/python $(STUDIO) \
	  || $(LABEL_STUDIO)/bin/python -m pip install --quiet --disable-pip-version-check $(STUDIO)
	@touch $@

lint: .venv/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: .venv/.dev
	$(BIN)/python -m benchmarks

clean:
	rm -rf .venv .cache book/_build book/sections .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# Resolves all extras together, so that their versions can't conflict. Then lists the hashes of all files
# that `make book` and `make test` install, except torch and its CUDA libraries: their build and source
# depend on the machine.
COMPILE = .venv-lock/bin/uv pip compile --quiet --universal --python-version 3.11 --no-annotate --no-header
SIMPLER := sed "s/python_full_version < '3\.14' and platform_python_implementation == 'CPython' and //; s/ ; sys_platform != 'emscripten' .$$/ \\\\/"
lock:
	rm -rf .venv-lock
	$(PYTHON) -m venv .venv-lock
	.venv-lock/bin/python -m pip install --quiet uv
	(sed -n '/^#/p' requirements.lock; $(COMPILE) --all-extras pyproject.toml | sed 's/ ;.*//') > lock.part
	mv lock.part requirements.lock
	printf 'hatchling>=1.27\neditables>=0.5\n' | $(COMPILE) --generate-hashes --constraint requirements.lock --extra book pyproject.toml - \
	  | $(SIMPLER) > requirements/book.lock
	$(COMPILE) --generate-hashes --constraint requirements.lock pyproject.toml \
	  $(addprefix --extra ,book local api cluster annotation inspect train dev) | $(SIMPLER) \
	  | awk 'NR == FNR { if (/^[a-z]/) seen[$$0] } NR != FNR { \
	    if (/^[a-z]/) kept = !($$0 in seen) && !/^(torch|triton|nvidia-|cuda-)/; if (kept) print }' \
	    requirements/book.lock - > lock.part
	mv lock.part requirements/dev.lock
	echo uv | $(COMPILE) --generate-hashes - | $(SIMPLER) > requirements/uv.lock
	rm -rf .venv-lock

.venv/bin/python:
	@python=$$(tools/find_python.sh "$(PYTHON)" .venv-uv) && echo "$$python -m venv .venv" && "$$python" -m venv .venv

# Building the book needs no deep-learning packages; development needs all packages.
.venv/.book: pyproject.toml requirements/uv.lock requirements/book.lock | .venv/bin/python
	$(call install,--requirement requirements/book.lock)
	$(PIP) --no-deps --no-build-isolation --editable .
	@touch $@

# The first line installs everything but torch, the second line the rest.
.venv/.dev: pyproject.toml requirements.lock requirements/uv.lock requirements/book.lock requirements/dev.lock | .venv/bin/python
	$(call install,--requirement requirements/book.lock --requirement requirements/dev.lock)
	$(PIP) --constraint requirements.lock --no-build-isolation --editable '.[book,local,api,cluster,annotation,inspect,train,dev]'
	@touch $@ .venv/.book
