"""Clients of the services that the matcher's ancestors had, generated from their table of names and numbers alone.

clients_test.py ADDRESS FOLDER: a graph service at ADDRESS with room for a few private graphs; FOLDER takes what is generated.
"""
import errno
import importlib
import json
import pathlib
import sys
import time
import unittest

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase
from google.protobuf.descriptor_pool import DescriptorPool
from grpc_tools import protoc

ADDRESS, FOLDER = sys.argv[1], pathlib.Path(sys.argv[2])

# The table, and nothing of this repository's protos.
PROTOS = {
    "fluxion": """
        service FluxionService {
          rpc Init(InitRequest) returns (InitResponse);
          rpc Match(MatchRequest) returns (MatchResponse);
          rpc Cancel(CancelRequest) returns (CancelResponse);
        }
        message InitRequest { string policy = 1; string jgf = 2; }
        message InitResponse {
          enum Result { INIT_SUCCESS = 0; INIT_ERROR = 1; INIT_DENIED = 2; }
          Result status = 1;
        }
        message MatchRequest { string jobspec = 1; string request = 2; bool reservation = 3; }
        message MatchResponse {
          enum Result { MATCH_SUCCESS = 0; MATCH_ERROR = 1; MATCH_DENIED = 2; }
          string allocation = 1; int64 jobid = 2; bool reserved = 3; int64 at = 4; float overhead = 5;
          Result status = 6;
        }
        message CancelRequest { int64 jobID = 2; }
        message CancelResponse {
          enum Result { CANCEL_SUCCESS = 0; CANCEL_REQUEST_ERROR = 1; CANCEL_ERROR = 2; CANCEL_DENIED = 3; }
          int64 jobID = 1; int32 error = 2; Result status = 3;
        }""",
    "fluxcli": """
        service FluxcliService {
          rpc Match(MatchRequest) returns (MatchResponse);
          rpc Cancel(CancelRequest) returns (CancelResponse);
        }
        message PodSpec {
          string id = 1; string container = 2; int32 cpu = 3; int64 memory = 4; int64 gpu = 5; int64 storage = 6;
          repeated string labels = 7;
        }
        message NodeAlloc { string nodeID = 1; int32 tasks = 2; }
        message MatchRequest { PodSpec ps = 1; string request = 2; int32 count = 3; }
        message MatchResponse { string podID = 1; repeated NodeAlloc nodelist = 2; int64 jobID = 3; }
        message CancelRequest { int64 jobID = 2; }
        message CancelResponse { int64 jobID = 1; int32 error = 2; }""",
    "service": """
        service ExternalPluginService {
          rpc GetResources(ResourceRequest) returns (ResourceResponse);
          rpc ListGroups(GroupRequest) returns (GroupResponse);
          rpc GetGroup(GroupRequest) returns (GroupResponse);
        }
        message ResourceRequest {}
        message ResourceResponse { string graph = 1; }
        message GroupRequest { string group = 1; }
        message GroupResponse { string name = 1; int64 size = 2; }""",
}


def generate():
    """The modules of messages and of stubs, by package."""
    modules = {}
    sys.path.insert(0, str(FOLDER))
    for package, text in PROTOS.items():
        name = f"ancestor_{package}"
        (FOLDER / f"{name}.proto").write_text(f'syntax = "proto3";\npackage {package};\n{text}\n')
        status = protoc.main(["protoc", f"-I{FOLDER}", f"--python_out={FOLDER}", f"--grpc_python_out={FOLDER}",
                              f"{FOLDER}/{name}.proto"])
        assert status == 0, f"protoc: {package}"
        modules[package] = (importlib.import_module(f"{name}_pb2"), importlib.import_module(f"{name}_pb2_grpc"))
    return modules


MODULES = generate()
FLUXION, FLUXION_GRPC = MODULES["fluxion"]
FLUXCLI, FLUXCLI_GRPC = MODULES["fluxcli"]
SERVICE, SERVICE_GRPC = MODULES["service"]


def graph(nodes=3, cores=4, gpus=1):
    """A cluster of nodes; memory in MB."""
    vertices, edges = [], []

    def add(kind, number, parent, path, rank=-1, **more):
        uniq = len(vertices)
        name = f"{kind}{number}"
        path = f"{path}/{name}"
        vertices.append({"id": str(uniq), "metadata": {
            "type": kind, "basename": kind, "name": name, "id": number, "uniq_id": uniq, "rank": rank,
            "unit": "", "size": 1, "paths": {"containment": path}, **more}})
        if parent is not None:
            edges.append({"source": str(parent), "target": str(uniq), "metadata": {"subsystem": "containment"}})
        return uniq, path

    root, top = add("cluster", 0, None, "")
    for n in range(nodes):
        node, path = add("node", n, root, top, rank=n)
        for kind, count in (("core", cores), ("gpu", gpus)):
            for i in range(count):
                add(kind, i, node, path, rank=n)
        add("memory", 0, node, path, rank=n, size=4096, unit="MB", divisible=True)
    return json.dumps({"graph": {"nodes": vertices, "edges": edges}})


def jobspec(nodes, cores, duration=600):
    """YAML, as the ancestors wrote it."""
    return f"""
version: 9999
resources:
  - type: node
    count: {nodes}
    with:
      - type: slot
        count: 1
        label: default
        with:
          - {{type: core, count: {cores}}}
tasks:
  - {{command: [app], slot: default, count: {{per_slot: 1}}}}
attributes: {{system: {{duration: {duration}}}}}
"""


def connect():
    return grpc.insecure_channel(ADDRESS, options=[("grpc.use_local_subchannel_pool", 1)])


def trailing(call, key="fluxqueue-reason"):
    return dict(call.trailing_metadata()).get(key, "")


class Fluxion(unittest.TestCase):
    def setUp(self):
        self.channel = connect()
        self.stub = FLUXION_GRPC.FluxionServiceStub(self.channel)

    def tearDown(self):
        self.channel.close()

    def init_with(self, text):
        """Graphs that nobody uses any more go, and there is room again."""
        deadline = time.monotonic() + 20
        while True:
            response, call = self.stub.Init.with_call(FLUXION.InitRequest(policy="low", jgf=text))
            if response.status != FLUXION.InitResponse.INIT_DENIED or time.monotonic() > deadline:
                return response, call
            time.sleep(0.2)

    def init(self, **more):
        return self.init_with(graph(**more))

    def match(self, text, **more):
        return self.stub.Match.with_call(FLUXION.MatchRequest(jobspec=text, **more))

    def test_init_match_cancel(self):
        response, call = self.init()
        self.assertEqual(response.status, FLUXION.InitResponse.INIT_SUCCESS)
        self.assertTrue(dict(call.initial_metadata())["fluxqueue-graph"])

        response, call = self.match(jobspec(2, 4), request="allocate")
        self.assertEqual(response.status, FLUXION.MatchResponse.MATCH_SUCCESS)
        self.assertEqual((response.jobid, response.reserved, response.at), (1, False, 0))
        self.assertGreater(response.overhead, 0)
        self.assertLess(response.overhead, 1)
        nodes = [node["metadata"] for node in json.loads(response.allocation)["graph"]["nodes"]]
        self.assertEqual(sorted(n["paths"]["containment"] for n in nodes if n["type"] == "node"),
                         ["/cluster0/node0", "/cluster0/node1"])
        self.assertEqual(sum(n["type"] == "core" for n in nodes), 8)
        self.assertEqual(trailing(call), "")

        response, call = self.match(jobspec(2, 4), request="allocate")
        self.assertEqual(response.status, FLUXION.MatchResponse.MATCH_DENIED)
        self.assertEqual((response.allocation, response.jobid), ("", 0))
        self.assertIn("node: needs 2", trailing(call))

        response, _ = self.match(jobspec(2, 4), reservation=True)
        self.assertEqual(response.status, FLUXION.MatchResponse.MATCH_SUCCESS)
        self.assertEqual((response.jobid, response.reserved, response.at), (3, True, 600))

        response, _ = self.match(jobspec(3, 4), request="satisfiability")
        self.assertEqual((response.status, response.allocation), (FLUXION.MatchResponse.MATCH_SUCCESS, ""))
        response, _ = self.match(jobspec(4, 4), request="satisfiability")
        self.assertEqual(response.status, FLUXION.MatchResponse.MATCH_DENIED)

        response = self.stub.Cancel(FLUXION.CancelRequest(jobID=1))
        self.assertEqual((response.jobID, response.error, response.status), (1, 0, FLUXION.CancelResponse.CANCEL_SUCCESS))
        response, call = self.stub.Cancel.with_call(FLUXION.CancelRequest(jobID=1))
        self.assertEqual((response.jobID, response.error, response.status), (1, 2, FLUXION.CancelResponse.CANCEL_ERROR))
        self.assertIn("job 1", trailing(call))
        response = self.stub.Cancel(FLUXION.CancelRequest(jobID=-1))
        self.assertEqual((response.error, response.status), (22, FLUXION.CancelResponse.CANCEL_REQUEST_ERROR))

    def test_what_cannot_be_read(self):
        response, call = self.init_with("{}")
        self.assertEqual(response.status, FLUXION.InitResponse.INIT_ERROR)
        self.assertIn("graph", trailing(call))
        self.init()
        for text, request in (("version: 1", "allocate"), (jobspec(1, 1), "take")):
            response, call = self.match(text, request=request)
            self.assertEqual(response.status, FLUXION.MatchResponse.MATCH_ERROR)
            self.assertTrue(trailing(call))

    def test_without_init(self):
        """The pool's graph is meant, and this service runs alone."""
        response, call = self.match(jobspec(1, 1))
        self.assertEqual(response.status, FLUXION.MatchResponse.MATCH_ERROR)
        self.assertIn("Postgres", trailing(call))
        response = self.stub.Cancel(FLUXION.CancelRequest(jobID=1))
        self.assertEqual((response.error, response.status), (errno.EIO, FLUXION.CancelResponse.CANCEL_ERROR))

    def test_clients_do_not_meet(self):
        self.init()
        other = connect()
        stub = FLUXION_GRPC.FluxionServiceStub(other)
        stub.Init(FLUXION.InitRequest(jgf=graph(nodes=1)))
        self.assertEqual(self.match(jobspec(3, 4))[0].status, FLUXION.MatchResponse.MATCH_SUCCESS)
        self.assertEqual(stub.Match(FLUXION.MatchRequest(jobspec=jobspec(1, 4))).jobid, 1)
        other.close()

    def test_too_many_graphs(self):
        channels = []
        while len(channels) < 20:
            channels.append(connect())
            response, call = FLUXION_GRPC.FluxionServiceStub(channels[-1]).Init.with_call(
                FLUXION.InitRequest(jgf=graph(nodes=1)))
            if response.status != FLUXION.InitResponse.INIT_SUCCESS:
                break
        self.assertEqual(response.status, FLUXION.InitResponse.INIT_DENIED)
        self.assertIn("too many", trailing(call))
        self.assertEqual(self.init()[0].status, FLUXION.InitResponse.INIT_SUCCESS)
        self.assertEqual(self.match(jobspec(1, 1))[0].status, FLUXION.MatchResponse.MATCH_SUCCESS)
        for channel in channels:
            channel.close()


class Fluxcli(unittest.TestCase):
    def test_match_cancel(self):
        with connect() as channel:
            FLUXION_GRPC.FluxionServiceStub(channel).Init(FLUXION.InitRequest(policy="low", jgf=graph()))
            stub = FLUXCLI_GRPC.FluxcliServiceStub(channel)
            pod = FLUXCLI.PodSpec(id="default/pod", container="image", cpu=2, memory=1 << 30)
            response = stub.Match(FLUXCLI.MatchRequest(ps=pod, request="allocate", count=6))
            self.assertEqual((response.podID, response.jobID), ("default/pod", 1))
            self.assertEqual([(n.nodeID, n.tasks) for n in response.nodelist], [("node0", 2), ("node1", 2), ("node2", 2)])
            response, call = stub.Match.with_call(FLUXCLI.MatchRequest(ps=pod, request="allocate", count=1))
            self.assertEqual((len(response.nodelist), response.jobID), (0, 0))
            self.assertIn("core", trailing(call))
            response = stub.Cancel(FLUXCLI.CancelRequest(jobID=1))
            self.assertEqual((response.jobID, response.error), (1, 0))
            self.assertEqual(stub.Cancel(FLUXCLI.CancelRequest(jobID=1)).error, 2)
            pod = FLUXCLI.PodSpec(id="gpus", cpu=1, gpu=1, memory=4 << 30)
            response = stub.Match(FLUXCLI.MatchRequest(ps=pod, count=3))
            self.assertEqual([n.tasks for n in response.nodelist], [1, 1, 1])


class ExternalPlugin(unittest.TestCase):
    def test_resources_and_groups(self):
        with connect() as channel:
            fluxion = FLUXION_GRPC.FluxionServiceStub(channel)
            fluxion.Init(FLUXION.InitRequest(policy="low", jgf=graph()))
            for nodes in (1, 2):
                fluxion.Match(FLUXION.MatchRequest(jobspec=jobspec(nodes, 2)))
            stub = SERVICE_GRPC.ExternalPluginServiceStub(channel)
            self.assertEqual(json.loads(stub.GetResources(SERVICE.ResourceRequest()).graph), json.loads(graph()))
            groups, name = [], ""
            while True:
                group = stub.ListGroups(SERVICE.GroupRequest(group=name))
                if not group.name:
                    break
                groups.append((group.name, group.size))
                name = group.name
            self.assertEqual(groups, [("1", 1), ("2", 2)])
            self.assertEqual(stub.GetGroup(SERVICE.GroupRequest(group="2")).size, 2)
            with self.assertRaises(grpc.RpcError) as error:
                stub.GetGroup(SERVICE.GroupRequest(group="3"))
            self.assertEqual(error.exception.code(), grpc.StatusCode.NOT_FOUND)


class Server(unittest.TestCase):
    SERVICES = {
        "fluxion.FluxionService": ["Cancel", "Init", "Match"],
        "fluxcli.FluxcliService": ["Cancel", "Match"],
        "service.ExternalPluginService": ["GetGroup", "GetResources", "ListGroups"],
        "fluxqueue.matcher.v1.Matcher": ["CreateGraph", "DeleteGraph", "Explain", "Find", "GetGraph", "GetJob", "Match",
                                         "MatchStream", "Release", "WatchAllocations", "WhatIf"],
    }

    def test_services_and_methods_are_listed(self):
        with connect() as channel:
            database = ProtoReflectionDescriptorDatabase(channel)
            services = set(database.get_services())
            self.assertLessEqual(set(self.SERVICES), services)
            pool = DescriptorPool(database)
            for name, methods in self.SERVICES.items():
                service = pool.FindServiceByName(name)
                self.assertEqual(sorted(method.name for method in service.methods), methods)

    def test_the_table_is_what_reflection_says(self):
        with connect() as channel:
            pool = DescriptorPool(ProtoReflectionDescriptorDatabase(channel))
            for package, (module, _) in MODULES.items():
                for name, ours in module.DESCRIPTOR.message_types_by_name.items():
                    served = pool.FindMessageTypeByName(f"{package}.{name}")
                    self.assertEqual([(f.name, f.number, f.type, f.is_repeated) for f in served.fields],
                                     [(f.name, f.number, f.type, f.is_repeated) for f in ours.fields], name)
                    numbers = [[(v.name, v.number) for e in d.enum_types for v in e.values] for d in (served, ours)]
                    self.assertEqual(*numbers)

    def test_health(self):
        # This service has no Postgres, which private graphs do not need.
        with connect() as channel:
            stub = health_pb2_grpc.HealthStub(channel)
            for service in ["", *self.SERVICES]:
                response = stub.Check(health_pb2.HealthCheckRequest(service=service))
                self.assertEqual(response.status, health_pb2.HealthCheckResponse.SERVING)
            with self.assertRaises(grpc.RpcError) as error:
                stub.Check(health_pb2.HealthCheckRequest(service="nobody"))
            self.assertEqual(error.exception.code(), grpc.StatusCode.NOT_FOUND)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
