-- Gives each service, and the command line, a role of its own, and each service that keeps something the schema of its name
-- with all that is in it. To be run in Fluxqueue's database:
--
--   psql -X -v ON_ERROR_STOP=1 -f roles.sql DSN
--
-- As a superuser; or as a role with CREATEROLE that owns the database, and is a member of the role that the services have
-- shared until now. As often as one likes, and while the services run. New roles have no password: give each its own
-- (\password fluxqueue_queue). What they may read of each other's is given by the services (libs/postgres/grants.h).
--
-- The role that owned the tables before is made a member of the new ones, so that the services that still use it go on, and
-- a release can be rolled back; the last query says how to end that.
--
-- Each step is a transaction of its own: a lock on two tables at once could meet a service that has them the other way round.
DO $roles$
DECLARE
  account text;
  owner text;
  own_schema oid;
  former name[];
  helps boolean;
  command text;
BEGIN
  FOREACH account IN ARRAY '{admission,queue,matcher,binder,cleanup,graph,cli}'::text[] LOOP
    owner := 'fluxqueue_' || account;
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = owner) THEN
      EXECUTE format('CREATE ROLE %I LOGIN', owner);
    END IF;
    IF NOT has_database_privilege(owner, current_database(), 'CONNECT') THEN
      EXECUTE format('GRANT CONNECT ON DATABASE %I TO %I', current_database(), owner);
    END IF;
    -- They keep nothing.
    CONTINUE WHEN account IN ('graph', 'cli');

    -- Who gives something to a role has to be a member of it, but for superusers.
    helps := NOT pg_has_role(owner, 'MEMBER');
    IF helps THEN
      EXECUTE format('GRANT %I TO CURRENT_USER', owner);
    END IF;
    IF NOT EXISTS (SELECT FROM pg_namespace WHERE nspname = account) THEN
      EXECUTE format('CREATE SCHEMA %I AUTHORIZATION %I', account, owner);
    END IF;
    COMMIT;

    SELECT oid INTO own_schema FROM pg_namespace WHERE nspname = account;
    SELECT array_agg(DISTINCT r.rolname) INTO former
    FROM (SELECT nspowner AS oid FROM pg_namespace WHERE oid = own_schema
          UNION SELECT relowner FROM pg_class WHERE relnamespace = own_schema) AS owners
    JOIN pg_roles r USING (oid) WHERE r.rolname <> owner AND NOT r.rolsuper;
    FOR command IN
      SELECT format('ALTER SCHEMA %I OWNER TO %I', nspname, owner)
      FROM pg_namespace WHERE oid = own_schema AND pg_get_userbyid(nspowner) <> owner
      UNION ALL
      SELECT format('ALTER TABLE %s OWNER TO %I', oid::regclass, owner)
      FROM pg_class WHERE relnamespace = own_schema AND relkind IN ('r', 'p', 'v', 'm', 'S')
        AND pg_get_userbyid(relowner) <> owner
        -- The sequence of a column goes with its table.
        AND NOT EXISTS (SELECT FROM pg_depend WHERE classid = 'pg_class'::regclass AND objid = pg_class.oid AND deptype IN ('a', 'i')
                        AND refclassid = 'pg_class'::regclass AND refobjsubid > 0)
      UNION ALL
      SELECT format('ALTER ROUTINE %s OWNER TO %I', oid::regprocedure, owner)
      FROM pg_proc WHERE pronamespace = own_schema AND pg_get_userbyid(proowner) <> owner
    LOOP
      EXECUTE command;
      COMMIT;
    END LOOP;

    IF helps THEN
      EXECUTE format('REVOKE %I FROM CURRENT_USER', owner);
    END IF;
    IF former IS NOT NULL THEN
      EXECUTE format('GRANT %I TO %s', owner, (SELECT string_agg(quote_ident(f), ', ') FROM unnest(former) AS f));
    END IF;
    COMMIT;
  END LOOP;
END
$roles$;

SELECT format('REVOKE %I FROM %I;', r.rolname, m.rolname) AS "when the services log in with their own roles"
FROM pg_auth_members a JOIN pg_roles r ON r.oid = a.roleid JOIN pg_roles m ON m.oid = a.member
WHERE r.rolname IN ('fluxqueue_admission', 'fluxqueue_queue', 'fluxqueue_matcher', 'fluxqueue_binder', 'fluxqueue_cleanup',
                    'fluxqueue_graph', 'fluxqueue_cli')
  AND NOT m.rolsuper;
