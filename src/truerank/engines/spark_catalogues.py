"""Item factors -> files on every executor of a Spark session.

A broadcast would be unpickled in each Python worker; files are mapped into memory once per machine.
"""

from __future__ import annotations

import atexit
import shutil
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING, Any

from truerank.engines.catalogues import (
    Catalogue,
    Items,
    Piece,
    add_popularity,
    array_pieces,
    table_piece,
    write_catalogue,
)
from truerank.engines.spark_frames import FactorFrames, is_frame
from truerank.errors import raised_elsewhere

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame


def ship(factors: FactorFrames, items_per_block: int | None, popularity: pa.Table | None = None) -> Catalogue:
    """Write the item factors as blocks, and let Spark copy them to the executors that need them.

    A dataframe passes through the driver a part at a time. The copies are kept until the session ends. `popularity` has
    the columns item and count.
    """
    pieces = _frame_pieces(factors.items) if is_frame(factors.items) else array_pieces(factors.items)
    folder = mkdtemp(prefix="truerank-")
    # Spark copies the files from here whenever a new executor needs them
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    with raised_elsewhere():
        catalogue = write_catalogue(pieces, folder, items_per_block)
        if popularity is not None:
            counts = popularity["count"].to_numpy()
            catalogue = add_popularity(catalogue, folder, popularity["item"].combine_chunks(), counts)
    factors.session.addArtifacts(*(str(Path(folder) / name) for name in catalogue.files), file=True)
    return catalogue


@lru_cache(maxsize=4)
def shipped(catalogue: Catalogue) -> Items:
    """Return the items of a catalogue, on an executor; its Python workers keep the files open."""
    from pyspark import SparkFiles

    return catalogue.open(SparkFiles.get)


def _frame_pieces(frame: DataFrame) -> Iterator[Piece]:
    """Yield the rows of a dataframe in the order of the ids; the driver holds few at a time."""
    import pyarrow as pa

    packed: Any = frame.orderBy("item").mapInArrow(_pack, "packed binary")
    for row in packed.toLocalIterator(prefetchPartitions=True):
        table = pa.ipc.open_stream(row.packed).read_all()
        yield table_piece(table["item"].combine_chunks(), table["features"].combine_chunks())


def _pack(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield each batch as the bytes of an Arrow stream."""
    import pyarrow as pa

    for batch in batches:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, batch.schema) as stream:
            stream.write_batch(batch)
        yield pa.RecordBatch.from_pydict({"packed": pa.array([sink.getvalue().to_pybytes()], pa.binary())})
