-- +goose Up

-- One row: the version of this schema and the oldest binary that it serves,
-- both as schema versions. Every later migration sets both.
create table schema_info (
    one           boolean primary key default true check (one),
    version       integer not null,
    oldest_binary integer not null
);
insert into schema_info (version, oldest_binary) values (1, 1);

create table principals (
    id         uuid primary key,
    name       text not null unique,
    created_at timestamptz not null
);

create table people (
    id             uuid primary key,
    institution_id text not null unique,
    created_at     timestamptz not null
);

create table tokens (
    id           uuid primary key,
    principal_id uuid not null references principals (id),
    principal    text not null,
    hash         bytea not null unique,
    created_at   timestamptz not null,
    created_by   text not null,
    expires_at   timestamptz,
    revoked_at   timestamptz
);
create index tokens_principal on tokens (principal_id);

create table holds (
    id             uuid not null primary key,
    intent         text not null,
    reason         text not null,
    placed_by      uuid not null,
    placed_by_name text not null,
    placed_at      timestamptz not null,
    lifted_by      uuid,
    lifted_by_name text not null,
    lift_reason    text not null,
    lifted_at      timestamptz
);
create index holds_active on holds (placed_at) where lifted_at is null;

create table executions (
    id              uuid primary key,
    short_code      text not null unique,
    version         bigint not null,
    head_seq        bigint not null,
    head_hash       bytea not null,
    state           text not null,
    intent          text not null,
    agent           text not null,
    input           text not null,
    metadata        text not null,
    channel         text not null,
    actor_id        uuid,
    actor           text not null,
    principal_id    uuid,
    on_behalf_of    uuid,
    subject_ref     text not null,
    risk            text not null,
    policy_id       text not null,
    policy_revision text not null,
    reasons         text not null,
    approval_id     uuid,
    audit_ref       uuid,
    trace_id        text not null,
    timeout_ns      bigint not null,
    step            text not null,
    attempt         integer not null,
    lease_until     timestamptz,
    outcome         text not null,
    fault_code      text not null,
    created_at      timestamptz not null,
    updated_at      timestamptz not null,
    finished_at     timestamptz
);
create index executions_actor on executions (actor_id, id desc);
create index executions_state on executions (state, id desc);
create index executions_intent on executions (intent, id desc);
create index executions_channel on executions (channel, id desc);
create index executions_risk on executions (risk, id desc);
create index executions_subject on executions (subject_ref, id desc) where subject_ref <> '';
create index executions_fault on executions (fault_code, id desc) where fault_code <> '';
create index executions_created on executions (created_at);
create index executions_unsettled on executions (id) where state in ('approved', 'running');

create table approvals (
    id           uuid primary key,
    short_code   text not null unique,
    execution_id uuid not null references executions (id),
    version      bigint not null,
    status       text not null,
    subject      text not null,
    subject_hash text not null,
    requirement  text not null,
    intent       text not null,
    risk         text not null,
    policy_id    text not null,
    reasons      text not null,
    requester    uuid,
    on_behalf_of uuid,
    created_at   timestamptz not null,
    expires_at   timestamptz not null,
    closed_at    timestamptz
);
create index approvals_execution on approvals (execution_id, id);
create index approvals_status on approvals (status, id desc);
create index approvals_intent on approvals (intent, id desc);
create index approvals_late on approvals (expires_at) where status = 'pending';

-- The roles that the stages of an approval ask for, so that the list of what a
-- person may decide is an index look-up.
create table approval_roles (
    role        text not null,
    approval_id uuid not null references approvals (id),
    primary key (role, approval_id)
);

create table approval_decisions (
    id            uuid primary key,
    approval_id   uuid not null references approvals (id),
    position      integer not null,
    approver      uuid not null,
    approver_name text not null,
    handle        text not null,
    roles         text not null,
    verdict       text not null,
    reason        text not null,
    subject_hash  text not null,
    channel       text not null,
    principal_id  uuid,
    decided_at    timestamptz not null,
    unique (approval_id, position),
    unique (approval_id, approver, verdict)
);

create table idempotency_keys (
    principal_id uuid not null,
    key          text not null,
    digest       bytea not null,
    execution_id uuid not null references executions (id),
    created_at   timestamptz not null,
    primary key (principal_id, key)
);
create index idempotency_keys_created on idempotency_keys (created_at);

create table artifacts (
    id           uuid primary key,
    execution_id uuid not null references executions (id),
    filename     text not null,
    media_type   text not null,
    content      bytea not null,
    sha256       bytea not null,
    created_at   timestamptz not null,
    unique (execution_id, filename)
);

-- The evidence. execution_id refers to no row: a request that was refused
-- before it became an execution has an id and a chain, but no execution.
-- tx orders events as they were committed (see the Merkle log).
create table audit_events (
    id              uuid primary key,
    stream_id       uuid not null,
    execution_id    uuid,
    seq             bigint not null check (seq > 0),
    event_type      text not null,
    occurred_at     timestamptz not null,
    actor_id        uuid,
    principal_id    uuid,
    channel         text not null,
    subject_ref     text not null,
    error_code      text not null,
    policy_revision text not null,
    trace_id        text not null,
    payload         text,
    salt            bytea,
    payload_digest  bytea not null,
    prev_hash       bytea not null,
    hash            bytea not null,
    tx              bigint not null default pg_current_xact_id()::text::bigint,
    unique (stream_id, seq)
);
create index audit_events_tx on audit_events (tx, id);
create index audit_events_execution on audit_events (execution_id, id desc);
create index audit_events_type on audit_events (event_type, id desc);
create index audit_events_actor on audit_events (actor_id, id desc);
create index audit_events_principal on audit_events (principal_id, id desc);
create index audit_events_subject on audit_events (subject_ref, id desc) where subject_ref <> '';
create index audit_events_code on audit_events (error_code, id desc) where error_code <> '';
create index audit_events_occurred on audit_events using brin (occurred_at);

-- +goose StatementBegin
create function anuencia_refuse() returns trigger language plpgsql as $$
begin
    raise exception '% is append-only: % is refused', tg_table_name, tg_op using errcode = 'restrict_violation';
end $$;
-- +goose StatementEnd

-- +goose StatementBegin
create function anuencia_execution_ended() returns trigger language plpgsql as $$
begin
    raise exception 'execution % has ended as %: a terminal state never changes', old.id, old.state using errcode = 'restrict_violation';
end $$;
-- +goose StatementEnd

-- +goose StatementBegin
create function anuencia_approval_ended() returns trigger language plpgsql as $$
begin
    raise exception 'approval % has ended as %: an end never changes', old.id, old.status using errcode = 'restrict_violation';
end $$;
-- +goose StatementEnd

create trigger audit_events_append_only before update or delete on audit_events
    for each row execute function anuencia_refuse();
create trigger audit_events_no_truncate before truncate on audit_events
    for each statement execute function anuencia_refuse();
create trigger executions_no_delete before delete on executions
    for each row execute function anuencia_refuse();
create trigger executions_no_truncate before truncate on executions
    for each statement execute function anuencia_refuse();
create trigger executions_ended before update on executions
    for each row when (old.state in ('completed', 'failed', 'incomplete', 'cancelled'))
    execute function anuencia_execution_ended();
create trigger approvals_no_delete before delete on approvals
    for each row execute function anuencia_refuse();
create trigger approvals_no_truncate before truncate on approvals
    for each statement execute function anuencia_refuse();
create trigger approvals_ended before update on approvals
    for each row when (old.status in ('rejected', 'expired', 'withdrawn', 'superseded'))
    execute function anuencia_approval_ended();
create trigger approval_decisions_append_only before update or delete on approval_decisions
    for each row execute function anuencia_refuse();
create trigger approval_decisions_no_truncate before truncate on approval_decisions
    for each statement execute function anuencia_refuse();
create trigger approval_roles_append_only before update or delete on approval_roles
    for each row execute function anuencia_refuse();
