"""serve.py PROGRAM ARGUMENT…: runs a program beside an S3 server on loopback, and ends as it does.

The server is moto, which signs each request as Amazon's own library does, and compares. It has one bucket, `archive`, and one
account; the program finds both in its environment. Lists have two names a page.
"""

import json
import logging
import os
import subprocess
import sys

# Before moto is imported. What is asked before the account exists: the bucket, the user, its rights, its key.
os.environ["INITIAL_NO_AUTH_ACTION_COUNT"] = "4"
os.environ["MOTO_S3_DEFAULT_MAX_KEYS"] = "2"

import boto3  # noqa: E402
from moto.server import ThreadedMotoServer  # noqa: E402

REGION = "us-east-1"
POLICY = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "s3:*", "Resource": "*"}]}


def main() -> int:
    logging.getLogger("werkzeug").setLevel(logging.WARNING)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    endpoint = "http://{}:{}".format(*server.get_host_and_port())
    anyone = {"endpoint_url": endpoint, "region_name": REGION, "aws_access_key_id": "a", "aws_secret_access_key": "a"}
    boto3.client("s3", **anyone).create_bucket(Bucket="archive")
    iam = boto3.client("iam", **anyone)
    iam.create_user(UserName="archivist")
    iam.put_user_policy(UserName="archivist", PolicyName="s3", PolicyDocument=json.dumps(POLICY))
    key = iam.create_access_key(UserName="archivist")["AccessKey"]
    environment = os.environ | {
        "AWS_ENDPOINT_URL": endpoint,
        "AWS_REGION": REGION,
        "AWS_ACCESS_KEY_ID": key["AccessKeyId"],
        "AWS_SECRET_ACCESS_KEY": key["SecretAccessKey"],
        "FLUXQUEUE_TEST_ARCHIVE": "s3://archive/tests",
    }
    try:
        return subprocess.run(sys.argv[1:], env=environment, check=False).returncode
    finally:
        server.stop()


sys.exit(main())
