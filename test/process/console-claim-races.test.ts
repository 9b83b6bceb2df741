/** Tests that two processes agree on a key's owner when users claim the key in both at the same time. */
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { publicIdOf } from '../support/audit.ts'
import { runCommandInProcess } from '../support/command.ts'
import { behindProxy, consoleHeaders } from '../support/console.ts'
import { openSqliteFile } from '../support/database.ts'
import { OtherProcess, source } from '../support/other-process.ts'
import { callServer, makeFolder, startServer } from '../support/process.ts'

describe('two processes', () => {
  /** A script that waits for a message, claims each key for its user and prints the status of each claim. */
  const script = (folder: string) => `
    import { randomBytes } from 'node:crypto'
    import { createAgentDirectory } from ${source('agents/cache.ts')}
    import { BudgetEnforcer } from ${source('budgets/enforcer.ts')}
    import { userActor } from ${source('identity/audit.ts')}
    import { parseConfig } from ${source('config/parse.ts')}
    import { claimKey } from ${source('console/operations.ts')}
    import { findOrCreateUser } from ${source('identity/users.ts')}
    import { Conversations } from ${source('conversations/conversations.ts')}
    import { createConversationStorage, openDatabase } from ${source('db/open.ts')}
    import { localBus as bus } from ${source('replicas/bus.ts')}
    import { createPositions } from ${source('lib/clock.ts')}
    import { createKeyDirectory } from ${source('identity/authenticate.ts')}
    import { systemClock as clock } from ${source('lib/clock.ts')}
    import { createUsageTracker } from ${source('usage/tracker.ts')}
    import { createWebhookDirectory } from ${source('webhooks/directory.ts')}
    const { db } = await openDatabase({ dataDir: ${JSON.stringify(`${folder}/data`)}, role: 'command' })
    const { config } = await parseConfig({})
    const random = randomBytes
    const keys = createKeyDirectory(db, clock)
    const budgets = new BudgetEnforcer({ config, db, clock, random, log: undefined, subjectKey: random(32) })
    const usage = createUsageTracker({ config, db, clock, random, log: undefined, budgets })
    const nextPosition = createPositions(clock)
    const storage = createConversationStorage({ db, postgres: undefined }, ${JSON.stringify(`${folder}/data`)})
    const log = { warn() {} }
    const conversations = new Conversations({
      config, clock, random, nextPosition, storage, log, bus, isOnlyServer: false, capabilityKey: random(32),
    })
    const agents = createAgentDirectory(db, clock)
    const webhooks = createWebhookDirectory({ config, db, clock, random, storage, onPrepared() {} })
    const deps = {
      config, db, clock, random, nextPosition, keys, usage, budgets, agents, conversations, webhooks, log,
    }
    const email = 'there@example.org'
    const trace = { requestId: 'there', clientAddress: '127.0.0.1' }
    const { id } = await findOrCreateUser(deps, { email, name: email, username: undefined, groups: [] }, trace)
    const actor = userActor(email, trace)
    console.log('ready')
    process.stdin.once('data', async (text) => {
      const claims = JSON.parse(text).map((key) => claimKey(deps, actor, id, key)
        .then(() => 200, (error) => error.status))
      console.log(JSON.stringify(await Promise.all(claims)))
    })
  `

  test("agree on each key's owner when they claim the same keys", async () => {
    const folder = await makeFolder()
    const server = await startServer({ folder, env: { ...behindProxy } })
    const created: string[] = []
    for (const name of ['one', 'two', 'three', 'four', 'five']) {
      const { stdout } = await runCommandInProcess(['keys', 'create', '--name', name], { folder })
      created.push(stdout.trim())
    }
    const keys = [server.key as string, ...created]
    const other = new OtherProcess(script(folder))
    expect(await other.hears()).toBe('ready')
    other.say(JSON.stringify(keys))
    const here = await Promise.all(
      keys.map(async (key) => {
        const response = await fetch(`${server.url}/v1/manager/claim-key`, {
          method: 'POST',
          headers: { 'X-Email': 'here@example.org', 'Content-Type': 'application/json', ...consoleHeaders },
          body: JSON.stringify({ parent_key: key }),
        })
        return response.status
      }),
    )
    const there: number[] = JSON.parse(await other.hears())
    for (const [index, status] of here.entries()) {
      expect([status, there[index]].sort()).toEqual([200, 409])
      expect((await callServer(server.url, 'GET', '/v1/models', keys[index])).status).toBe(200)
    }
    const claimed = openSqliteFile(join(folder, 'data'))
      .prepare(`select target_id from audit_events where action = 'key.claim'`)
      .pluck()
      .all()
    expect(claimed.sort()).toEqual(keys.map(publicIdOf).sort())
  })
})
