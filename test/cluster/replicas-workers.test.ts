/** Tests `parley serve --workers`, which runs several processes on one port. */
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { createTestDatabase } from '../support/postgres.ts'
import {
  callServer,
  makeFolder,
  printedLink,
  type RunningProcess,
  runParley,
  startParley,
} from '../support/process.ts'

// Starting processes is slow on a busy machine.
vi.setConfig({ testTimeout: 180_000 })

const printedKey = /svc_[0-9A-Za-z]{61}/

/** Starts workers with a new database, and waits until they have printed the key and the sign-in link. */
async function startWorkers(count: number, env: Readonly<Record<string, string>> = {}) {
  const all = { PORT: '0', DATABASE_URL: await createTestDatabase('empty'), ...env }
  const running = startParley(['serve', '--workers', String(count)], { folder: await makeFolder(), env: all })
  onTestFinished(async () => {
    // The workers exit when their parent process is killed.
    running.kill('SIGKILL')
    await running.ended
  })
  const [, url = ''] = await running.prints(/listening on (http:\S+)\n/)
  await running.prints(printedLink)
  const key = printedKey.exec(running.stdout)?.[0] as string
  return { running, url, key }
}

async function listChildren({ pid }: RunningProcess): Promise<number[]> {
  const text = await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8')
  return text.trim().split(/\s+/).map(Number)
}

const count = (text: string, pattern: RegExp) => text.match(new RegExp(pattern, 'g'))?.length ?? 0

async function openStream(url: string, key: string, content: string): Promise<ReadableStreamDefaultReader> {
  const response = await fetch(`${url}/v1/chat/completions`, {
    method: 'POST',
    headers: { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' },
    body: JSON.stringify({ model: 'mock', stream: true, messages: [{ role: 'user', content }] }),
  })
  expect(response.status).toBe(200)
  return (response.body as ReadableStream).getReader()
}

async function readToEnd(reader: ReadableStreamDefaultReader): Promise<string> {
  const parts: Uint8Array[] = []
  for (let part = await reader.read(); !part.done; part = await reader.read()) parts.push(part.value)
  return Buffer.concat(parts).toString()
}

describe('serve --workers fails', () => {
  test('when the database is SQLite', async () => {
    const words = ['serve', '--workers', '2']
    const { code, stdout, stderr } = await runParley(words, { folder: await makeFolder() })
    expect([code, stdout]).toEqual([1, ''])
    expect(stderr).toBe(
      'parley: Several workers require PostgreSQL, because SQLite allows only one writer. Set DATABASE_URL, or omit --workers.\n',
    )
  })

  test('when PARLEY_DATA_DIR is :memory:', async () => {
    const env = { DATABASE_URL: 'postgres://127.0.0.1:1/none', PARLEY_DATA_DIR: ':memory:' }
    const { code, stderr } = await runParley(['serve', '--workers', '2'], { folder: await makeFolder(), env })
    expect([code, stderr]).toEqual([1, expect.stringMatching(/^parley: PARLEY_DATA_DIR=:memory: .*\n$/)])
  })

  test.each(['0', '65', 'two', '1.5', '-1'])('when the number is %s', async (text) => {
    const { code, stderr } = await runParley(['serve', '--workers', text], { folder: await makeFolder() })
    expect([code, stderr]).toEqual([1, expect.stringContaining('Must be a whole number from 1 to 64')])
  })

  test('with a single error message when the port is in use', async () => {
    const taken = createServer().listen(0, '127.0.0.1')
    onTestFinished(() => void taken.close())
    await once(taken, 'listening')
    const { port } = taken.address() as { port: number }
    const env = { PORT: String(port), DATABASE_URL: await createTestDatabase() }
    const { code, stdout, stderr } = await runParley(['serve', '--workers', '3'], {
      folder: await makeFolder(),
      env,
    })
    expect([code, stdout]).toEqual([1, ''])
    expect(count(stderr, /^parley: /m)).toBe(1)
    expect(stderr).toContain(`Port ${port} on 127.0.0.1 is used by another program`)
  })
})

test('start messages are printed only once, and a killed worker is restarted', async () => {
  const { running, url, key } = await startWorkers(2)
  expect(count(running.stdout, /listening on/)).toBe(1)
  expect(count(running.stdout, printedKey)).toBe(1)
  const before = await listChildren(running)
  expect(before).toHaveLength(2)
  process.kill(before[0] as number, 'SIGKILL')
  await running.prints(/"worker":\d+,"exitCode":null,"signalCode":"SIGKILL".*worker died/, 'stderr')
  await expect
    .poll(async () => (await listChildren(running)).filter((pid) => !before.includes(pid)).length, {
      timeout: 60_000,
    })
    .toBe(1)
  for (let turn = 0; turn < 4; turn++) {
    expect((await callServer(url, 'GET', '/v1/keys/validate', key)).status).toBe(200)
  }
  running.kill('SIGTERM')
  expect(await running.ended).toMatchObject({ code: 0 })
  expect(count(running.stdout, /listening on|svc_/)).toBe(2)
})

test('an open stream is completed when all workers receive SIGINT', async () => {
  const { running, url, key } = await startWorkers(2)
  const stream = await openStream(url, key, '[[tokens:30]] [[delay:100]]')
  await stream.read()
  // A terminal sends Ctrl-C to all processes of the group.
  for (const pid of await listChildren(running)) process.kill(pid, 'SIGINT')
  running.kill('SIGINT')
  await running.prints(/SIGINT received/, 'stderr')
  expect((await readToEnd(stream)).endsWith('data: [DONE]\n\n')).toBe(true)
  const { code, stderr } = await running.ended
  expect([code, count(stderr, /SIGINT received/)]).toEqual([0, 1])
})

test('a second signal stops all workers immediately', async () => {
  const { running, url, key } = await startWorkers(2)
  const stream = await openStream(url, key, '[[tokens:100000]] [[delay:20]]')
  await stream.read()
  const cut = expect(readToEnd(stream)).rejects.toThrow()
  running.kill('SIGTERM')
  await running.prints(/SIGTERM received/, 'stderr')
  running.kill('SIGTERM')
  expect(await running.ended).toMatchObject({ code: 1 })
  await cut
})

test("the log lines of a worker include the worker's number", async () => {
  const { running } = await startWorkers(2, { LOG_LEVEL: 'warn', PATH: '/nowhere' })
  expect(running.stderr).toMatch(/"worker":1,.*ffmpeg/)
  expect(running.stderr).toMatch(/"worker":2,.*ffmpeg/)
})
