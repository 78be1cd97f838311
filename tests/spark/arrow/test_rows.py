"""The columns that can be read and written."""

import pytest
from pyspark.sql.types import BinaryType, IntegerType, StringType, StructField, StructType

from exacta.spark.arrow.rows import check_read_columns, check_write_columns, read_schema
from exacta.spark.options import OptionError


def schema_of(columns):
    types = {"string": StringType(), "binary": BinaryType(), "int": IntegerType()}
    return StructType([StructField(name, types[kind]) for name, kind in columns.items()])


@pytest.mark.parametrize(
    ("columns", "topic", "sentence"),
    [
        ({"key": "string"}, "t", "needs a column 'value'"),
        ({"value": "string"}, None, "set option 'topic', or give every row one"),
        ({"value": "int"}, "t", "must be of type string or binary, not int"),
        ({"value": "string", "valeu": "string"}, "t", "column 'valeu' cannot be written"),
        ({"value": "string", "Value": "string"}, "t", "there are two columns 'value'"),
        ({"value": "string", "headers": "string"}, "t", "column 'headers' must be of type array<struct<"),
    ],
)
def test_columns_that_cannot_be_written(columns, topic, sentence):
    with pytest.raises(OptionError) as refused:
        check_write_columns(schema_of(columns), topic)
    assert sentence in str(refused.value)


def test_columns_go_by_their_names_in_any_case():
    check_write_columns(schema_of({"Value": "string", "KEY": "binary", "Topic": "string", "Partition": "int"}), None)


@pytest.mark.parametrize(
    ("columns", "include_headers", "sentence"),
    [
        ({"value": "binary", "size": "int"}, False, "there is no column 'size' to read; the columns are: key, value"),
        ({"value": "string"}, False, "column 'value' is binary, not string: read it as it is, and cast it"),
        ({"value": "binary", "VALUE": "binary"}, False, "column 'value' is in the schema twice"),
        ({}, False, "the schema has no columns"),
        ({"value": "binary"}, True, "adds column 'headers', which the schema leaves out"),
    ],
)
def test_columns_that_cannot_be_read(columns, include_headers, sentence):
    with pytest.raises(OptionError) as refused:
        check_read_columns(schema_of(columns), include_headers=include_headers)
    assert sentence in str(refused.value)


@pytest.mark.parametrize("include_headers", [False, True])
def test_columns_that_can_be_read(include_headers):
    check_read_columns(read_schema(include_headers=include_headers), include_headers=include_headers)
    check_read_columns(schema_of({"Partition": "int", "value": "binary"}), include_headers=False)
