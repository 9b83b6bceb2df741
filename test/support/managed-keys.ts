/** Starts services whose parent key may manage keys, and manages keys over REST. */
import { expect } from 'vitest'
import { serviceActor } from '../../src/identity/audit.ts'
import { updateManagedKey } from '../../src/identity/managed-keys.ts'
import { parseKey } from '../../src/lib/api-key.ts'
import { type CallOptions, startApp, type TestApp } from './app.ts'
import { createFakeClock } from './fake-clock.ts'

/** The time at which the service starts, in Unix seconds. */
export const NOW = 1_800_000_000

export const idOf = (key: string) => parseKey(key)?.publicId as string

type ManagerChanges = Parameters<typeof updateManagedKey>[4]

/** Changes the app's parent key as the operator does with the `keys update` command. */
export const changeManager = (app: TestApp, changes: ManagerChanges) =>
  updateManagedKey(app.service.deps, serviceActor, { kind: 'command' }, idOf(app.key), changes)

/** Starts a service whose parent key may manage keys. */
export async function startWithManager(env: Readonly<Record<string, string>> = {}) {
  const clock = createFakeClock(NOW)
  const app = await startApp(env, { clock })
  await changeManager(app, { can_manage_keys: true })
  return { app, clock }
}

export async function createKey(app: TestApp, body: object = {}): Promise<{ id: string; key: string }> {
  const answer = await app.call('POST', '/v1/keys', { body: { name: 'shop', ...body } })
  expect(answer.status).toBe(201)
  return answer.body
}

export const changeKey = (app: TestApp, id: string, body: object = {}, options: CallOptions = {}) =>
  app.call('POST', `/v1/keys/${id}`, { body, ...options })

export const actOnKey = (app: TestApp, id: string, action: string, options: CallOptions = {}) =>
  app.call('POST', `/v1/keys/${id}/${action}`, options)

export const statusOf = async (app: TestApp, key: string) =>
  (await app.call('GET', '/v1/keys/validate', { key })).status

export async function readAudit({ service }: TestApp, target: string) {
  const rows = await service.deps.db
    .selectFrom('audit_events')
    .select(['action', 'actor_kind', 'actor', 'tenant', 'details'])
    .where('target_id', '=', target)
    .orderBy('id')
    .execute()
  return rows.map(({ details, ...row }) => ({ ...row, details: JSON.parse(details) }))
}
