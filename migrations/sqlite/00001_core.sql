-- +goose Up

-- Times are integer microseconds since 1970, UTC. Ids are canonical UUID text.

-- One row: the version of this schema and the oldest binary that it serves,
-- both as schema versions. Every later migration sets both.
create table schema_info (
    one           integer primary key default 1 check (one = 1),
    version       integer not null,
    oldest_binary integer not null
) strict;
insert into schema_info (version, oldest_binary) values (1, 1);

create table principals (
    id         text not null primary key,
    name       text not null unique,
    created_at integer not null
) strict;

create table people (
    id             text not null primary key,
    institution_id text not null unique,
    created_at     integer not null
) strict;

create table tokens (
    id           text not null primary key,
    principal_id text not null references principals (id),
    principal    text not null,
    hash         blob not null unique,
    created_at   integer not null,
    created_by   text not null,
    expires_at   integer,
    revoked_at   integer
) strict;
create index tokens_principal on tokens (principal_id);

create table holds (
    id             text not null primary key,
    intent         text not null,
    reason         text not null,
    placed_by      text not null,
    placed_by_name text not null,
    placed_at      integer not null,
    lifted_by      text,
    lifted_by_name text not null,
    lift_reason    text not null,
    lifted_at      integer
) strict;
create index holds_active on holds (placed_at) where lifted_at is null;

create table executions (
    id              text not null primary key,
    short_code      text not null unique,
    version         integer not null,
    head_seq        integer not null,
    head_hash       blob not null,
    state           text not null,
    intent          text not null,
    agent           text not null,
    input           text not null,
    metadata        text not null,
    channel         text not null,
    actor_id        text,
    actor           text not null,
    principal_id    text,
    on_behalf_of    text,
    subject_ref     text not null,
    risk            text not null,
    policy_id       text not null,
    policy_revision text not null,
    reasons         text not null,
    approval_id     text,
    audit_ref       text,
    trace_id        text not null,
    timeout_ns      integer not null,
    step            text not null,
    attempt         integer not null,
    lease_until     integer,
    outcome         text not null,
    fault_code      text not null,
    created_at      integer not null,
    updated_at      integer not null,
    finished_at     integer
) strict;
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
    id           text not null primary key,
    short_code   text not null unique,
    execution_id text not null references executions (id),
    version      integer not null,
    status       text not null,
    subject      text not null,
    subject_hash text not null,
    requirement  text not null,
    intent       text not null,
    risk         text not null,
    policy_id    text not null,
    reasons      text not null,
    requester    text,
    on_behalf_of text,
    created_at   integer not null,
    expires_at   integer not null,
    closed_at    integer
) strict;
create index approvals_execution on approvals (execution_id, id);
create index approvals_status on approvals (status, id desc);
create index approvals_intent on approvals (intent, id desc);
create index approvals_late on approvals (expires_at) where status = 'pending';

-- The roles that the stages of an approval ask for, so that the list of what a
-- person may decide is an index look-up.
create table approval_roles (
    role        text not null,
    approval_id text not null references approvals (id),
    primary key (role, approval_id)
) strict;

create table approval_decisions (
    id            text not null primary key,
    approval_id   text not null references approvals (id),
    position      integer not null,
    approver      text not null,
    approver_name text not null,
    handle        text not null,
    roles         text not null,
    verdict       text not null,
    reason        text not null,
    subject_hash  text not null,
    channel       text not null,
    principal_id  text,
    decided_at    integer not null,
    unique (approval_id, position),
    unique (approval_id, approver, verdict)
) strict;

create table idempotency_keys (
    principal_id text not null,
    key          text not null,
    digest       blob not null,
    execution_id text not null references executions (id),
    created_at   integer not null,
    primary key (principal_id, key)
) strict;
create index idempotency_keys_created on idempotency_keys (created_at);

create table artifacts (
    id           text not null primary key,
    execution_id text not null references executions (id),
    filename     text not null,
    media_type   text not null,
    content      blob not null,
    sha256       blob not null,
    created_at   integer not null,
    unique (execution_id, filename)
) strict;

-- The evidence. execution_id refers to no row: a request that was refused
-- before it became an execution has an id and a chain, but no execution.
-- ord is the order of the commits, kept by VACUUM (see the Merkle log).
create table audit_events (
    ord             integer primary key autoincrement,
    id              text not null unique,
    stream_id       text not null,
    execution_id    text,
    seq             integer not null check (seq > 0),
    event_type      text not null,
    occurred_at     integer not null,
    actor_id        text,
    principal_id    text,
    channel         text not null,
    subject_ref     text not null,
    error_code      text not null,
    policy_revision text not null,
    trace_id        text not null,
    payload         text,
    salt            blob,
    payload_digest  blob not null,
    prev_hash       blob not null,
    hash            blob not null,
    unique (stream_id, seq)
) strict;
create index audit_events_execution on audit_events (execution_id, id desc);
create index audit_events_type on audit_events (event_type, id desc);
create index audit_events_actor on audit_events (actor_id, id desc);
create index audit_events_principal on audit_events (principal_id, id desc);
create index audit_events_subject on audit_events (subject_ref, id desc) where subject_ref <> '';
create index audit_events_code on audit_events (error_code, id desc) where error_code <> '';
create index audit_events_occurred on audit_events (occurred_at);

-- +goose StatementBegin
create trigger audit_events_no_update before update on audit_events
begin
    select raise(abort, 'audit_events is append-only: UPDATE is refused');
end;
-- +goose StatementEnd

-- +goose StatementBegin
create trigger audit_events_no_delete before delete on audit_events
begin
    select raise(abort, 'audit_events is append-only: DELETE is refused');
end;
-- +goose StatementEnd

-- +goose StatementBegin
create trigger approval_decisions_no_update before update on approval_decisions
begin
    select raise(abort, 'approval_decisions is append-only: UPDATE is refused');
end;
-- +goose StatementEnd

-- +goose StatementBegin
create trigger approval_decisions_no_delete before delete on approval_decisions
begin
    select raise(abort, 'approval_decisions is append-only: DELETE is refused');
end;
-- +goose StatementEnd

-- +goose StatementBegin
create trigger approval_roles_no_update before update on approval_roles
begin
    select raise(abort, 'approval_roles is append-only: UPDATE is refused');
end;
-- +goose StatementEnd

-- +goose StatementBegin
create trigger approval_roles_no_delete before delete on approval_roles
begin
    select raise(abort, 'approval_roles is append-only: DELETE is refused');
end;
-- +goose StatementEnd

-- +goose StatementBegin
create trigger executions_no_delete before delete on executions
begin
    select raise(abort, 'executions is append-only: DELETE is refused');
end;
-- +goose StatementEnd

-- +goose StatementBegin
create trigger approvals_no_delete before delete on approvals
begin
    select raise(abort, 'approvals is append-only: DELETE is refused');
end;
-- +goose StatementEnd

-- +goose StatementBegin
create trigger executions_ended before update on executions
    when old.state in ('completed', 'failed', 'incomplete', 'cancelled')
begin
    select raise(abort, 'the execution has ended: a terminal state never changes');
end;
-- +goose StatementEnd

-- +goose StatementBegin
create trigger approvals_ended before update on approvals
    when old.status in ('rejected', 'expired', 'withdrawn', 'superseded')
begin
    select raise(abort, 'the approval has ended: an end never changes');
end;
-- +goose StatementEnd

-- INSERT OR REPLACE deletes the old row without firing its delete trigger, so
-- a row that would be replaced is refused before.

-- +goose StatementBegin
create trigger audit_events_no_replace before insert on audit_events
    when exists (select 1 from audit_events where id = new.id or (stream_id = new.stream_id and seq = new.seq))
begin
    select raise(abort, 'audit_events already has this row: it is append-only');
end;
-- +goose StatementEnd

-- +goose StatementBegin
create trigger executions_no_replace before insert on executions
    when exists (select 1 from executions where id = new.id or short_code = new.short_code)
begin
    select raise(abort, 'executions already has this row: it is append-only');
end;
-- +goose StatementEnd

-- +goose StatementBegin
create trigger approvals_no_replace before insert on approvals
    when exists (select 1 from approvals where id = new.id or short_code = new.short_code)
begin
    select raise(abort, 'approvals already has this row: it is append-only');
end;
-- +goose StatementEnd

-- +goose StatementBegin
create trigger approval_decisions_no_replace before insert on approval_decisions
    when exists (select 1 from approval_decisions where id = new.id or (approval_id = new.approval_id and position = new.position) or (approval_id = new.approval_id and approver = new.approver and verdict = new.verdict))
begin
    select raise(abort, 'approval_decisions already has this row: it is append-only');
end;
-- +goose StatementEnd
