-- Commands that were accepted, by the client's own id: each is accepted once. Claims are not here: their job id follows from
-- the client's, so queue.jobs knows them. Forgotten after a day.
CREATE TABLE commands (
  client_id text PRIMARY KEY,
  job_id text NOT NULL,
  accepted timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX commands_accepted ON commands (accepted);
