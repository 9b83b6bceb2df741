/** Tests replicas that use PostgreSQL as their coordination store while it is unavailable. */
import { expect, onTestFinished, test, vi } from 'vitest'
import type { TestApp } from '../support/app.ts'
import { createFakeClock } from '../support/fake-clock.ts'
import { type PostgresServer, query, startPostgres } from '../support/postgres.ts'
import { callRoundRobin, createReplicaSettings, startReplicas } from '../support/replicas.ts'

// Databases and servers are slow on a busy machine.
vi.setConfig({ testTimeout: 120_000 })

const list = (app: TestApp) => app.call('GET', '/v1/models')

const ways: [string, (server: PostgresServer) => Promise<void>, (server: PostgresServer) => Promise<void>][] =
  [
    ['is down', (server) => server.kill(), (server) => server.start()],
    ['does not respond', (server) => server.signal('SIGSTOP'), (server) => server.signal('SIGCONT')],
  ]

test.each(ways)(
  'replicas enforce their share of the limit while a PostgreSQL coordination store %s',
  async (_what, takeAway, bringBack) => {
    const server = await startPostgres()
    onTestFinished(() => server.remove())
    const url = server.urlOf('postgres')
    // With a fixed clock, the key stays cached and the calls do not need the database.
    const clock = createFakeClock()
    const env = {
      ...(await createReplicaSettings('PostgreSQL')),
      DATABASE_URL: url,
      PARLEY_RATE_LIMIT_PARENT: '10',
    }
    const apps = await startReplicas(env, { clock })
    expect(await callRoundRobin(apps, 2, list)).toEqual({ 200: 2 })
    // Waits for each replica's next heartbeat, when it counts the active replicas.
    const before = await query(url, 'select id, seen_at_ms from replicas')
    await expect
      .poll(async () => {
        const now = await query(url, 'select id, seen_at_ms from replicas')
        return now.filter(({ id, seen_at_ms: seen }) =>
          before.some((row) => row.id === id && Number(row.seen_at_ms) < Number(seen)),
        )
      })
      .toHaveLength(2)
    await takeAway(server)
    for (const app of apps) expect(await callRoundRobin([app], 15, list)).toEqual({ 200: 5, 429: 10 })
    await bringBack(server)
    const former = before.map(({ id }) => id)
    await expect
      .poll(
        async () => {
          const now = await query(url, 'select id from replicas').catch(() => [])
          return now.filter(({ id }) => !former.includes(id))
        },
        { timeout: 60_000 },
      )
      .toHaveLength(2)
    // Removes the counts of requests that were waiting while the server did not respond.
    await query(url, 'delete from rate_windows')
    expect(await callRoundRobin(apps, 30, list)).toEqual({ 200: 10, 429: 20 })
  },
)
