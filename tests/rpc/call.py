"""Calls a method of a gRPC server by its reflection: tools/grpc."""
import argparse
import json
import os
import pathlib
import sys

import grpc
from google.protobuf import descriptor_pb2, json_format, message_factory
from google.protobuf.descriptor_pool import DescriptorPool
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase

GRAPH = "fluxqueue-graph"
SECONDS = 30
MAPS = ("amounts", "metadata")


def arguments():
    parser = argparse.ArgumentParser(prog="grpc")
    parser.add_argument("method")
    parser.add_argument("fields", nargs="*", default=[])
    parser.add_argument("-H", dest="metadata", action="append", default=[])
    parser.add_argument("--graph", type=pathlib.Path)
    parser.add_argument("--most", type=int, default=0)
    parser.add_argument("--address", default=os.environ.get("FLUXQUEUE_GRPC"))
    # What stands behind a "--" is the next request of a stream.
    words = sys.argv[1:]
    requests = []
    while "--" in words[1:]:
        at = len(words) - 1 - words[::-1].index("--")
        requests.insert(0, words[at + 1:])
        words = words[:at]
    parsed = parser.parse_intermixed_args(words)
    if not parsed.address:
        parser.error("--address, or FLUXQUEUE_GRPC in the environment, must say where the server is")
    return parsed, [parsed.fields, *requests]


def value_of(text):
    return pathlib.Path(text[1:]).read_text() if text.startswith("@") else text


def request_of(cls, fields):
    tree = {}
    for field in fields:
        path, _, text = field.partition("=")
        *above, name = path.split(".")
        here, descriptor = tree, cls.DESCRIPTOR
        for part in above:
            here = here.setdefault(part, {})
            descriptor = descriptor.fields_by_name[part].message_type
        known = descriptor.fields_by_name.get(name)
        if known is None:
            sys.exit(f"grpc: {descriptor.full_name} has no field {name!r}; it has {', '.join(descriptor.fields_by_name)}")
        value = value_of(text)
        if known.type == known.TYPE_BOOL:
            value = text == "true"
        if known.is_repeated:
            here.setdefault(name, []).append(value)
        else:
            here[name] = value
    return json_format.ParseDict(tree, cls())


def in_order(tree):
    """Protobuf's maps have none."""
    if isinstance(tree, list):
        return [in_order(item) for item in tree]
    if not isinstance(tree, dict):
        return tree
    return {key: dict(sorted(value.items())) if key in MAPS else in_order(value) for key, value in tree.items()}


def show(tree):
    tree = in_order(tree)
    line = json.dumps(tree, ensure_ascii=False)
    print(line if len(line) <= 110 else json.dumps(tree, ensure_ascii=False, indent=2))


def show_message(message, graph):
    tree = json_format.MessageToDict(message, preserving_proto_field_name=True)
    if graph and "key" in tree:
        graph.write_text(tree["key"])
        tree["key"] = f"in {graph.name}"
    show(tree)


def show_metadata(metadata, graph):
    for name, value in metadata or ():
        if name == GRAPH:
            if graph:
                graph.write_text(value)
            print(f"{name}: {f'in {graph.name}' if graph else value}")
        elif name.startswith("fluxqueue-"):
            print(f"{name}: {value}")


def show_error(error, pool):
    print(f"{error.code().name}: {error.details()}")
    for name, value in error.trailing_metadata() or ():
        if name != "grpc-status-details-bin":
            continue
        try:
            status = message_factory.GetMessageClass(pool.FindMessageTypeByName("google.rpc.Status")).FromString(value)
        except KeyError:
            return
        for detail in status.details:
            cls = message_factory.GetMessageClass(pool.FindMessageTypeByName(detail.type_url.rpartition("/")[2]))
            message = cls()
            detail.Unpack(message)
            show({message.DESCRIPTOR.name: json_format.MessageToDict(message)})


def call(channel, pool, options, requests):
    service, _, name = options.method.partition("/")
    method = pool.FindServiceByName(service).methods_by_name[name]
    input_class = message_factory.GetMessageClass(method.input_type)
    output_class = message_factory.GetMessageClass(method.output_type)
    metadata = [tuple(pair.split("=", 1)) for pair in options.metadata]
    if options.graph and options.graph.exists():
        metadata.append((GRAPH, options.graph.read_text()))
    proto = descriptor_pb2.MethodDescriptorProto()
    method.CopyToProto(proto)
    messages = [request_of(input_class, fields) for fields in requests]
    kind = {(False, False): channel.unary_unary, (False, True): channel.unary_stream,
            (True, True): channel.stream_stream}[(proto.client_streaming, proto.server_streaming)]
    stub = kind(f"/{options.method}", request_serializer=input_class.SerializeToString,
                response_deserializer=output_class.FromString)
    request = iter(messages) if proto.client_streaming else messages[0]
    if proto.server_streaming:
        answers = stub(request, metadata=metadata, timeout=SECONDS)
        for count, answer in enumerate(answers, 1):
            show_message(answer, options.graph)
            if count == options.most:
                answers.cancel()
                break
        return
    answer, done = stub.with_call(request, metadata=metadata, timeout=SECONDS)
    show_metadata(done.initial_metadata(), options.graph)
    show_message(answer, options.graph)
    show_metadata(done.trailing_metadata(), None)


def list_services(database, pool, wanted):
    if not wanted:
        print("\n".join(sorted(database.get_services())))
        return
    for method in pool.FindServiceByName(wanted[0]).methods:
        print(f"{wanted[0]}/{method.name}  {method.input_type.full_name} -> {method.output_type.full_name}")


def main():
    options, requests = arguments()
    with grpc.insecure_channel(options.address, options=[("grpc.max_receive_message_length", -1)]) as channel:
        database = ProtoReflectionDescriptorDatabase(channel)
        pool = DescriptorPool(database)
        try:
            if options.method == "list":
                list_services(database, pool, options.fields)
            else:
                call(channel, pool, options, requests)
        except grpc.RpcError as error:
            show_error(error, pool)
            sys.exit(1)
        except KeyError as unknown:
            sys.exit(f"grpc: the server has no {unknown}; tools/grpc list shows what it has")


if __name__ == "__main__":
    main()
