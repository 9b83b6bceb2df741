/** Tests the audit log entries that commands create, both with and without a running server. */
import { userInfo } from 'node:os'
import { join } from 'node:path'
import { expect, test, vi } from 'vitest'
import type { AuditRow } from '../../src/identity/audit.ts'
import { expectNoSecrets, publicIdOf } from '../support/audit.ts'
import { runCommandInProcess } from '../support/command.ts'
import { openSqliteFile } from '../support/database.ts'
import { callServer, makeFolder, startServer } from '../support/process.ts'

// Starting processes is slow on a busy machine.
vi.setConfig({ testTimeout: 60_000 })

const rowsOf = (folder: string) =>
  openSqliteFile(join(folder, 'data')).prepare('select * from audit_events order by id').all() as AuditRow[]

/** Runs a command that must succeed; returns its output. */
async function parley(folder: string, ...words: string[]): Promise<string> {
  const { stdout, code } = await runCommandInProcess(words, { folder })
  expect(code).toBe(0)
  return stdout.trim()
}

/** The expected audit row for a command that the current OS user ran. */
const byCommand = (action: string, key: string) => ({
  action,
  actor_kind: 'command',
  actor: userInfo().username,
  tenant: publicIdOf(key),
  request_id: null,
  client_address: null,
})

test("each command that changes data adds one audit row with the OS user, in chronological order with the server's rows", async () => {
  const folder = await makeFolder()
  const server = await startServer({ folder })
  const first = server.key as string
  const key = await parley(folder, 'keys', 'create', '--name', 'ci')
  const yaml = 'name: Greeter\ninstructions: Greet people.\n'
  const { agent_id } = (await callServer(server.url, 'POST', '/v1/agents', first, { yaml })).body
  await callServer(server.url, 'POST', `/v1/agents/${agent_id}/rotate-key`, first)
  await parley(folder, 'keys', 'rotate', publicIdOf(key), '--overlap', '60')
  await parley(folder, 'agents', 'delete', agent_id, '--key', first, '--yes')
  await parley(folder, 'keys', 'revoke', key)
  await parley(folder, 'keys', 'list')
  await parley(folder, 'keys', 'generate')
  const rows = rowsOf(folder)
  expect(rows).toMatchObject([
    { action: 'key.create', actor_kind: 'service', target_id: publicIdOf(first) },
    { action: 'session.offer', actor_kind: 'service', target_id: 'administrator' },
    { ...byCommand('key.create', key), target_id: publicIdOf(key) },
    { action: 'agent.create', actor_kind: 'parent_key', actor: publicIdOf(first), target_id: agent_id },
    { action: 'agent_key.rotate', actor_kind: 'parent_key', actor: publicIdOf(first), target_id: agent_id },
    { ...byCommand('key.rotate', key), target_id: publicIdOf(key) },
    { ...byCommand('agent.delete', first), target_id: agent_id },
    { ...byCommand('key.revoke', key), target_id: publicIdOf(key) },
  ])
  expect(rows).toHaveLength(8)
  expect(JSON.parse(rows[2]?.details ?? '')).toEqual({ name: 'ci', key_hint: `svc_…${key.slice(-4)}` })
  expectNoSecrets(rows)
})

test('a failed command does not add an audit row', async () => {
  const folder = await makeFolder()
  const key = await parley(folder, 'keys', 'create', '--name', 'ci')
  await parley(folder, 'keys', 'revoke', key)
  const before = rowsOf(folder)
  for (const words of [
    ['keys', 'revoke', key],
    ['keys', 'rotate', key],
    ['keys', 'revoke', 'zzzzzzzzzzzz'],
    ['agents', 'delete', 'agent-00000000000000000000', '--yes'],
  ]) {
    expect((await runCommandInProcess(words, { folder })).code).toBe(1)
  }
  expect(rowsOf(folder)).toEqual(before)
})

test('a command changes nothing if its audit row cannot be written', async () => {
  const folder = await makeFolder()
  const key = await parley(folder, 'keys', 'create', '--name', 'ci')
  openSqliteFile(join(folder, 'data')).exec(
    `create trigger fail_at before insert on audit_events begin select raise(abort, 'refused'); end`,
  )
  const { code, stderr } = await runCommandInProcess(['keys', 'revoke', key], { folder })
  expect([code, stderr]).toEqual([1, 'parley: The database is not usable (refused).\n'])
  expect(JSON.parse(await parley(folder, 'keys', 'list', '--json'))).toMatchObject([{ revoked_at: null }])
})
