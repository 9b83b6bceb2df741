/** Inserts the parent keys and agents of a large installation. */
import type { Kysely } from 'kysely'
import type { Tables } from '../../src/db/tables.ts'

const ROWS_AT_ONCE = 200
const CREATED_AT = 1_700_000_000

/** Returns the id or key digest of an inserted row from its number. */
export const rowNames = {
  tenant: (key: number) => `tenant${String(key).padStart(6, '0')}`,
  agent: (agent: number) => `agent-${String(agent).padStart(20, '0')}`,
  digest: (agent: number) => String(agent).padStart(64, 'f'),
}

const policy = JSON.stringify({
  default_model: { provider: 'mock', model: 'mock' },
  allowed_models: [{ provider: 'mock', model: null }],
  fallback_models: [],
  max_output_tokens: 500,
})

/** Inserts parent keys and agents; the agents are distributed evenly among the parent keys. */
export async function insertLargeInstallation(
  db: Kysely<Tables>,
  keys: number,
  agents: number,
): Promise<void> {
  await db.transaction().execute(async (trx) => {
    for (const numbers of inBatches(keys)) {
      await trx.insertInto('parent_keys').values(numbers.map(toParentKey)).execute()
    }
    for (const numbers of inBatches(agents)) {
      const dealt = numbers.map((agent) => ({ agent, tenant: rowNames.tenant(agent % keys) }))
      await trx.insertInto('agents').values(dealt.map(toAgent)).execute()
      await trx.insertInto('credentials').values(dealt.map(toCredential)).execute()
    }
  })
}

function toParentKey(key: number) {
  const id = rowNames.tenant(key)
  return { id, name: `Key ${key}`, hint: 'svc_…0000', created_at: CREATED_AT + key }
}

interface Dealt {
  readonly agent: number
  readonly tenant: string
}

function toAgent({ agent, tenant }: Dealt) {
  return {
    id: rowNames.agent(agent),
    parent_key_id: tenant,
    version: 1,
    name: `Agent ${agent}`,
    source: `name: Agent ${agent}\ninstructions: ${'Greet people kindly. '.repeat(10)}\n`,
    format: 'yaml' as const,
    key_id: String(agent).padStart(12, '0'),
    key_sealed: `v1.${'k'.repeat(120)}`,
    key_hint: 'agnt_key-…0000',
    position: agent,
    created_at: CREATED_AT + agent,
    updated_at: CREATED_AT + agent,
    model_policy: policy,
    model_policy_updated_at: CREATED_AT,
  }
}

function toCredential({ agent, tenant }: Dealt) {
  return {
    digest: rowNames.digest(agent),
    kind: 'agent' as const,
    parent_key_id: tenant,
    agent_id: rowNames.agent(agent),
    created_at: CREATED_AT,
  }
}

function* inBatches(count: number): Iterable<number[]> {
  for (let from = 0; from < count; from += ROWS_AT_ONCE) {
    yield Array.from({ length: Math.min(ROWS_AT_ONCE, count - from) }, (_, index) => from + index)
  }
}
