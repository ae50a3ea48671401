-- What admission has said. Rows of workloads that have ended, or were withdrawn, are deleted.

create table pools (
  pool text primary key,
  -- of the topic fluxqueue.pool; chosen once
  partition integer not null,
  -- events.v1.PoolConfigured
  config bytea not null
);

create table queues (
  queue text primary key,
  pool text not null references pools,
  -- events.v1.QueueConfigured
  config bytea not null
);

create table workloads (
  uid text primary key,
  job_id text not null,
  pool text not null,
  queue text not null,
  kind text not null check (kind in ('Job', 'Pod')),
  namespace text not null,
  name text not null,
  -- of the object when the row was last written
  resource_version text not null,
  -- of the jobspec last sent
  revision integer not null,
  slots integer not null,
  priority integer not null,
  hold boolean not null,
  cancelled boolean not null,
  -- null: the queue's default; 0: unlimited
  duration_ms bigint,
  -- of one slot, in base units: {"cpu": 1500, …}
  requests jsonb not null,
  -- of what the object itself asked for
  demand_hash bigint not null,
  submitted boolean not null default true,
  withdrawn boolean not null default false
);
