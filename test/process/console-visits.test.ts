/** Tests console users that two processes on one database create or change at the same time. */
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { behindProxy } from '../support/console.ts'
import { openSqliteFile } from '../support/database.ts'
import { OtherProcess, source } from '../support/other-process.ts'
import { eventually, makeFolder, startServer } from '../support/process.ts'

const ada = 'ada@example.org'
describe('a first visit', () => {
  test('creates only one user and one key when two processes handle it concurrently', async () => {
    const folder = await makeFolder()
    const server = await startServer({ folder, env: { ...behindProxy } })
    const other = new OtherProcess(`
      import { openDatabase } from ${source('db/open.ts')}
      import { createPositions } from ${source('lib/clock.ts')}
      import { systemClock } from ${source('lib/clock.ts')}
      import { findOrCreateUser } from ${source('identity/users.ts')}
      import { randomBytes } from 'node:crypto'
      const { db } = await openDatabase({ dataDir: ${JSON.stringify(`${folder}/data`)}, role: 'command' })
      console.log('ready')
      process.stdin.once('data', async () => {
        const emails = Array.from({ length: 20 }, (_, index) => 'user' + index + '@example.org')
        const nextPosition = createPositions(systemClock)
        const deps = { db, clock: systemClock, random: randomBytes, nextPosition }
        const trace = { requestId: 'there', clientAddress: '127.0.0.1' }
        const users = await Promise.all(
          emails.map((email) => findOrCreateUser(deps, { email, name: email, username: undefined, groups: [] }, trace)),
        )
        console.log(JSON.stringify(users.map((user) => 'svc_' + user.active_key_id)))
      })
    `)
    expect(await other.hears()).toBe('ready')
    other.say('go')
    const [there, here] = await Promise.all([
      other.hears(),
      Promise.all(
        Array.from({ length: 20 }, async (_, index) => {
          const headers = { 'X-Email': `user${index}@example.org` }
          return (await (await fetch(`${server.url}/v1/manager/me`, { headers })).json()).parent_key
        }),
      ),
    ])
    expect(JSON.parse(there)).toEqual(here)
    expect(new Set(here).size).toBe(20)
    const rows = openSqliteFile(join(folder, 'data'))
      .prepare(`select target_id from audit_events where action = 'key.provision'`)
      .all() as { target_id: string }[]
    expect(rows.map((row) => `svc_${row.target_id}`).sort()).toEqual(here.sort())
  })
})

describe('a known console user', () => {
  test('receives a new key within seconds after another process revokes the old one', async () => {
    const folder = await makeFolder()
    const server = await startServer({ folder, env: { ...behindProxy } })
    const read = async () =>
      (await (await fetch(`${server.url}/v1/manager/me`, { headers: { 'X-Email': ada } })).json()).parent_key
    const before = await read()
    const other = new OtherProcess(`
      import { openDatabase } from ${source('db/open.ts')}
      const { db, close } = await openDatabase({ dataDir: ${JSON.stringify(`${folder}/data`)}, role: 'command' })
      await db.updateTable('parent_keys').set({ revoked_at: 1 }).where('is_automatic', '=', 1).execute()
      await close()
      console.log('revoked')
    `)
    expect(await other.hears()).toBe('revoked')
    expect(await eventually(async () => (await read()) !== before, true)).toBe(true)
  })
})
