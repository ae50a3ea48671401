#!/usr/bin/env python3
"""Calls one method of a gRPC service that has reflection, with JSON in and out, so without its protos.

    tests/rpc/call.py ADDRESS PACKAGE.SERVICE/METHOD [JSON] [--seconds N]

Needs what requirements.txt lists: $(tests/rpc/python_home.sh)/bin/python tests/rpc/call.py …
A stream is printed message by message, until it ends or the time is over. Exit code 1: the call failed; the code, the
message and the details of the error are printed.
"""
import argparse
import sys

import grpc
from google.protobuf import descriptor_pool, json_format, message_factory
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase


def to_json(message):
    return json_format.MessageToJson(message, indent=2, preserving_proto_field_name=True)


def print_error(error, pool):
    print(f"{error.code().name}: {error.details()}")
    for key, value in error.trailing_metadata() or ():
        if key != "grpc-status-details-bin":
            continue
        status = message_factory.GetMessageClass(pool.FindMessageTypeByName("google.rpc.Status")).FromString(value)
        for detail in status.details:
            kind = pool.FindMessageTypeByName(detail.type_url.split("/")[-1])
            print(f"{kind.name} {to_json(message_factory.GetMessageClass(kind).FromString(detail.value))}")


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("address")
    parser.add_argument("method")
    parser.add_argument("request", nargs="?", default="{}")
    parser.add_argument("--seconds", type=float, default=30)
    arguments = parser.parse_args()
    service_name, method_name = arguments.method.split("/")
    with grpc.insecure_channel(arguments.address) as channel:
        pool = descriptor_pool.DescriptorPool(ProtoReflectionDescriptorDatabase(channel))
        method = pool.FindServiceByName(service_name).methods_by_name[method_name]
        request = json_format.Parse(arguments.request, message_factory.GetMessageClass(method.input_type)())
        kind = channel.unary_stream if method.server_streaming else channel.unary_unary
        call = kind(
            f"/{service_name}/{method_name}",
            request_serializer=lambda message: message.SerializeToString(),
            response_deserializer=message_factory.GetMessageClass(method.output_type).FromString,
        )
        try:
            answer = call(request, timeout=arguments.seconds)
            for message in answer if method.server_streaming else [answer]:
                print(to_json(message), flush=True)
        except grpc.RpcError as error:
            print_error(error, pool)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
