/** Tests that a server that receives SIGTERM still records the usage of completed and interrupted calls. */

import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import Sqlite from 'better-sqlite3'
import { describe, expect, onTestFinished, test } from 'vitest'
import { mintKey } from '../../src/lib/api-key.ts'

/** Starts a server; returns its URL and its process. */
async function startServer(dataDir: string, env: Readonly<Record<string, string>>) {
  const main = join(import.meta.dirname, '../../src/main.ts')
  const child = spawn(process.execPath, [main, 'serve'], {
    cwd: tmpdir(),
    env: { ...process.env, PORT: '0', LOG_LEVEL: 'silent', PARLEY_DATA_DIR: dataDir, ...env },
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  const exited = once(child, 'exit')
  onTestFinished(() => void child.kill('SIGKILL'))
  for await (const line of createInterface(child.stdout)) {
    const url = /^listening on (.*)$/.exec(line)?.[1]
    if (url !== undefined) return { url, child, exited }
  }
  throw new Error('the server did not start')
}

describe('stopping a server with SIGTERM', () => {
  /** Starts streams, completes calls, stops the server and returns the number of recorded calls. */
  async function countAfterStop(wholeCount: number, streamCount: number) {
    const folder = await mkdtemp(join(tmpdir(), 'parley-usage-'))
    onTestFinished(() => rm(folder, { recursive: true, force: true }))
    const dataDir = join(folder, 'data')
    const key = mintKey('parent', randomBytes).text
    const env = { PARLEY_PARENT_KEY: key, PARLEY_SHUTDOWN_SECONDS: '0.01' }
    const { url, child, exited } = await startServer(dataDir, env)
    const chat = (content: string, stream: boolean) =>
      fetch(`${url}/v1/chat/completions`, {
        method: 'POST',
        headers: { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' },
        body: JSON.stringify({ messages: [{ role: 'user', content }], stream }),
      })
    const open = () => chat('[[delay:20]] [[tokens:50000]]', true)
    const streams = await Promise.all(Array.from({ length: streamCount }, open))
    const ends = Promise.all(streams.map((stream) => stream.text()))
    await Promise.all(Array.from({ length: wholeCount }, async () => (await chat('hello', false)).text()))
    child.kill('SIGTERM')
    expect(await exited).toEqual([0, null])
    for (const end of await ends) expect(end).toContain('"service_unavailable"')
    const database = new Sqlite(join(dataDir, 'parley.db'), { readonly: true })
    onTestFinished(() => void database.close())
    return {
      calls: database.prepare('select status, count(*) as n from usage_calls group by status').all(),
      sums: database.prepare('select sum(requests) as n from usage_days').pluck().get(),
    }
  }

  test('records the usage of calls that have just completed', async () => {
    expect(await countAfterStop(30, 0)).toEqual({ calls: [{ status: 'ok', n: 30 }], sums: 30 })
  })

  test('records the usage of interrupted streams', async () => {
    expect(await countAfterStop(0, 3)).toEqual({
      calls: [{ status: 'service_unavailable', n: 3 }],
      sums: 3,
    })
  })
})
