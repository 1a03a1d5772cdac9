# Everything there is to do here. Each target sets up what it needs; `make` alone lists them.

PYTHON ?=
export PYTHON
IN := .venv/bin/python

.DEFAULT_GOAL := help
.PHONY: help install java demo demo-cluster test test-heavy test-clients test-newest interop-needs interop pictures kills histories damages cleanings image release mutants wheels bench docs lint types house lock settings clean

help: ## this list
	@echo 'make …'
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  \1@\2/p' Makefile | awk -F@ '{ printf "%-13s %s\n", $$1, $$2 }'

install: ## .venv with every extra and the hot loops compiled (PYTHON=python3.12 picks a Python)
	@sh tools/venv.sh
	@$(IN) tools/install.py

java: ## a Java that Spark runs on (17 or newer)
	@sh tools/java.sh

demo: install java ## real flights → broker → Spark → topic and Delta table, killed on the way → picture
	@SPARK_SUBMIT_OPTS="$$($(IN) -m tools.class_archive)" $(IN) -m examples.flights

# Tests start hundreds of processes; where this is set, as in many containers, each would compile all that it imports.
test test-heavy test-clients interop-needs interop kills: export PYTHONDONTWRITEBYTECODE =

demo-cluster: install ## real flights into three nodes of ours, two of them killed on the way → every flight counted, picture
	@$(IN) -m examples.cluster_flights

test: install ## the tests (ARGS="-k fetch" passes arguments on)
	@sh tools/java.sh || echo 'make test: going on without Java: the tests that need Spark will fail and say so' >&2
	@$(IN) -m pytest --numprocesses auto --maxprocesses 4 --dist loadgroup --max-worker-restart 0 $(ARGS)

test-heavy: install ## the tests that `make test` leaves out because they need seconds of processor time: nodes that are killed, queries of Spark
	@sh tools/java.sh
	@$(IN) -m pytest tests --heavy -m heavy --numprocesses auto --maxprocesses 4 --dist loadgroup --max-worker-restart 0 $(ARGS)

test-clients: install ## the tests of the clients; OTTLA_POLLER=selectors runs them as on macOS and Windows, without epoll
	@$(IN) -m pytest --numprocesses auto --maxprocesses 4 --dist loadgroup --max-worker-restart 0 tests/network tests/client tests/aio $(ARGS)

test-newest: install ## clients, broker and coordination on the newest Python here, where it is not that of .venv
	@$(IN) -m tools.newest $(ARGS)

# Mostly brought over the network: .ci/run has it done while it looks at types and at the newest Python.
interop-needs: install ## what `make interop` needs: Maven, Chromium, Kerberos, Apache Kafka, another Spark, other clients
	@sh tools/java.sh maven
	@sh tools/chromium.sh
	@sh tools/kerberos.sh || echo 'make interop: continuing without Kerberos: the tests that need it are skipped with a message' >&2
	@$(IN) -m interop.needs

interop: interop-needs ## test other clients with our broker, our clients with Apache Kafka, and the console in Chromium
	@$(IN) -m pytest interop -o faulthandler_timeout=600 --numprocesses 2 --dist loadgroup --max-worker-restart 0 $(ARGS)

pictures: install ## take the pictures of the console in docs/pictures again, by its tests in Chromium
	@sh tools/chromium.sh
	@OTTLA_PICTURES=docs/pictures $(IN) -m pytest interop/test_console_pages.py -k every_page

kills: install ## long tests: kill each process of pipelines and Spark drivers at every step, restart clusters in turn, migrate to Kafka and back, explore larger models of exactly once, kill workers 200 times
	@sh tools/java.sh maven
	@$(IN) -m pytest interop tests/client/work -o faulthandler_timeout=0 --heavy --long -m long $(ARGS)

histories: install ## simulate ten thousand histories of replicas, a quorum, a controller and a share group, under every fault (HISTORIES=… for another number)
	@OTTLA_HISTORIES=$(or $(HISTORIES),10000) $(IN) -m pytest tests/simulation/test_replicas.py tests/simulation/test_stored_replicas.py tests/simulation/test_quorum.py tests/simulation/test_controller.py tests/simulation/test_share.py tests/simulation/test_share_shell.py -k under_any_faults -o faulthandler_timeout=0 --numprocesses auto $(ARGS)

damages: install ## damage one file of one node in clusters of three: is all lost data reported? (ARGS="--seed 100 --count 50")
	@$(IN) -m tests.broker.random_damage $(ARGS)

cleanings: install ## kill nodes of clusters while a topic is compacted: is the last record of each key kept? (ARGS="--seed 100 --count 20")
	@$(IN) -m tests.broker.random_compactions $(ARGS)

wheels: install ## build the files for PyPI in dist/ for each installed Python, and test each in a new environment
	@$(IN) tools/wheels.py

image: install ## build the root file system of the image in out/image, and start it by its entry point (needs root, mmdebstrap, Python 3.13)
	@$(IN) -m tools.image

release: install ## check everything, build a release twice in dist/, compare, and add image, bill of materials and licences (CHECKED=yes skips .ci/run)
	@[ "$(CHECKED)" ] || .ci/run
	@$(IN) -m tools.release

mutants: install ## change the pure parts by small mistakes, and report which of them the tests detect (ARGS="coordination/groups --all")
	@$(IN) -m tools.mutants $(ARGS)

bench: install ## run every benchmark; the tables are written to out/
	@sh tools/java.sh maven
	@$(IN) -m benchmarks

docs: install ## build the documentation as a site in out/site
	@NO_MKDOCS_2_WARNING=1 $(IN) -m mkdocs build --quiet --strict && echo 'see out/site/index.html'

lint: install ## check style, types and imports between the parts, and build the site and a wheel
	@.venv/bin/ruff check .
	@.venv/bin/ruff format --check .
	@.venv/bin/lint-imports
	@$(MAKE) --no-print-directory --jobs 2 types house

# The two run in parallel on a core each; the first needs a minute or two.
types: install
	@.venv/bin/mypy

house: install
	@$(IN) -m pytest --house -m house --numprocesses auto --maxprocesses 4 --dist loadgroup --max-worker-restart 0 tests/repository tests/pipelines/test_new_connector.py

lock: install ## write constraints.txt from the packages in .venv
	@$(IN) tools/lock.py

settings: install ## write src/ottla/client/config/typed_settings.py from the tables of options
	@$(IN) -m tools.typed_settings

clean: ## remove build results and caches; .venv is kept
	@rm -rf build dist out src/*.egg-info .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	@find src -name '*.so' -delete -o -name '*.c' -delete
	@find . -path ./.venv -prune -o -name __pycache__ -prune -exec rm -rf {} +
