-- Objects of a shard that could not be handled, and are left out (libs/delivery/quarantine.h).
CREATE TABLE quarantine (
  shard text NOT NULL,
  kind text NOT NULL,
  -- "namespace/…": stands for all of the kind in a namespace.
  uid text NOT NULL,
  space text NOT NULL,
  name text NOT NULL,
  -- resourceVersion of what failed last.
  version text NOT NULL,
  reason text NOT NULL,
  -- That it has failed.
  times bigint NOT NULL,
  -- Ends of the process while it was under way.
  ends int NOT NULL,
  -- Else it is only suspected.
  held boolean NOT NULL,
  -- A dead letter has gone out.
  told boolean NOT NULL,
  -- By the operator: the row goes, and the object is tried again.
  retry boolean NOT NULL DEFAULT false,
  since timestamptz NOT NULL DEFAULT now(),
  last timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (shard, kind, uid)
);

-- How often in a row the lease was taken from a holder that had not given it back.
ALTER TABLE leases ADD COLUMN ends int NOT NULL DEFAULT 0;

-- The object that the holder of a lease handles now. Written only when `ends` says that processes end again and again.
CREATE TABLE under_way (
  shard text PRIMARY KEY,
  kind text NOT NULL,
  uid text NOT NULL,
  space text NOT NULL,
  name text NOT NULL,
  version text NOT NULL
) WITH (fillfactor = 50);
