/** Tests what a server's first start prints and creates, and that later starts reuse it. */
import { once } from 'node:events'
import { readdir } from 'node:fs/promises'
import { createServer, type Server } from 'node:net'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { callServer, makeFolder, runParley, startParley, startServer } from '../support/process.ts'

// Starting processes is slow on a busy machine.
vi.setConfig({ testTimeout: 60_000 })

/** A parent key: the prefix, a 12-character id, a 43-character secret and a 6-character checksum. */
const WHOLE_KEY = /svc_[0-9A-Za-z]{61}/g

/** Starts a TCP server that accepts connections but never responds. */
async function startSilentListener(): Promise<{ server: Server; port: number }> {
  const server = createServer((socket) => socket.on('error', () => {}))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => void server.close())
  const address = server.address()
  return { server, port: typeof address === 'object' && address !== null ? address.port : 0 }
}

const validate = async (url: string, key: string) =>
  (await callServer(url, 'GET', '/v1/keys/validate', key)).status

describe('the first start', () => {
  test('prints the URL and one working parent key', async () => {
    const server = await startServer({ folder: await makeFolder() })
    expect(server.stdout).toMatch(/^listening on http:\/\/127\.0\.0\.1:\d+\n/)
    expect(server.stdout.match(WHOLE_KEY)).toEqual([server.key])
    expect(server.stdout.indexOf('svc_')).toBe(server.stdout.indexOf(server.key as string))
    expect(server.stderr).toBe('')
    const answer = await callServer(server.url, 'GET', '/v1/keys/validate', server.key)
    expect(answer).toEqual({ status: 200, body: { valid: true, kind: 'parent' } })
  })

  test('prints a key that works after a restart and is not printed again', async () => {
    const folder = await makeFolder()
    const first = await startServer({ folder })
    expect(await first.stop()).toMatchObject({ code: 0 })
    const second = await startServer({ folder })
    expect(second.stdout).toBe(`listening on ${second.url}\n`)
    expect(await validate(second.url, first.key as string)).toBe(200)
  })

  test('creates the database, the secret and the file folders in ./data', async () => {
    const folder = await makeFolder()
    await (await startServer({ folder })).stop()
    expect(await readdir(folder)).toEqual(['data'])
    const kept = ['.lock', 'artifacts', 'conversions', 'files', 'parley.db', 'secret']
    expect((await readdir(join(folder, 'data'))).sort()).toEqual(kept)
  })

  test('does not print a key if `keys create` already created one', async () => {
    const folder = await makeFolder()
    const { stdout } = await runParley(['keys', 'create', '--name', 'ci'], { folder })
    const server = await startServer({ folder })
    expect(server.stdout).not.toContain('svc_')
    expect(await validate(server.url, stdout.trim())).toBe(200)
  })
})

describe('a port that is already in use', () => {
  test('is reported in one sentence, and the next start still prints the first key', async () => {
    const folder = await makeFolder()
    const { port } = await startSilentListener()
    const env = { PORT: String(port) }
    expect(await startParley(['serve'], { folder, env }).ended).toEqual({
      code: 1,
      signal: null,
      stdout: '',
      stderr: `parley: Port ${port} on 127.0.0.1 is used by another program; set PORT to a free port.\n`,
    })
    const { url, key } = await startServer({ folder })
    expect(await validate(url, key as string)).toBe(200)
  })

  test('makes the server exit immediately, even if the gateway does not respond', async () => {
    const folder = await makeFolder()
    const [taken, gateway] = [await startSilentListener(), await startSilentListener()]
    const env = {
      PORT: String(taken.port),
      PARLEY_BACKEND: 'gateway',
      PARLEY_GATEWAY_URL: `http://127.0.0.1:${gateway.port}/v1`,
    }
    const { code, stderr } = await startParley(['serve'], { folder, env }).ended
    expect(code).toBe(1)
    // After waiting for the gateway, the server would also log that it could not read the model list.
    expect(stderr).toMatch(/^parley: Port \d+ on 127\.0\.0\.1 is used by another program; [^\n]*\n$/)
  })
})

describe('PARLEY_PARENT_KEY', () => {
  test('registers the key instead of creating and printing one', async () => {
    const folder = await makeFolder()
    const { stdout } = await runParley(['keys', 'generate'], { folder })
    const PARLEY_PARENT_KEY = stdout.trim()
    expect(await readdir(folder)).toEqual([])
    const server = await startServer({ folder, env: { PARLEY_PARENT_KEY } })
    expect(server.stdout).toBe(`listening on ${server.url}\n`)
    expect(await validate(server.url, PARLEY_PARENT_KEY)).toBe(200)
  })

  test('is ignored at the next start after the key was rotated', async () => {
    const folder = await makeFolder()
    const PARLEY_PARENT_KEY = (await runParley(['keys', 'generate'], { folder })).stdout.trim()
    const first = await startServer({ folder, env: { PARLEY_PARENT_KEY } })
    const { body } = await callServer(first.url, 'POST', '/v1/keys/rotate', PARLEY_PARENT_KEY)
    await first.stop()
    const second = await startServer({ folder, env: { PARLEY_PARENT_KEY } })
    expect(await validate(second.url, PARLEY_PARENT_KEY)).toBe(401)
    expect(await validate(second.url, body.key)).toBe(200)
  })

  test('is ignored after the key was revoked, and no other key is created', async () => {
    const folder = await makeFolder()
    const PARLEY_PARENT_KEY = (await runParley(['keys', 'generate'], { folder })).stdout.trim()
    await (await startServer({ folder, env: { PARLEY_PARENT_KEY } })).stop()
    await runParley(['keys', 'revoke', PARLEY_PARENT_KEY], { folder })
    const again = await startServer({ folder, env: { PARLEY_PARENT_KEY } })
    expect(again.stdout).toBe(`listening on ${again.url}\n`)
    expect(await validate(again.url, PARLEY_PARENT_KEY)).toBe(401)
  })
})

describe('after a server is killed', () => {
  test('an agent that it has created exists after the next start, and the agent key is accepted', async () => {
    const folder = await makeFolder()
    const first = await startServer({ folder })
    const yaml = 'name: Greeter\ninstructions: Greet people.\n'
    const { body: agent } = await callServer(first.url, 'POST', '/v1/agents', first.key, { yaml })
    first.kill('SIGKILL')
    expect(await first.ended).toMatchObject({ signal: 'SIGKILL' })

    const { url } = await startServer({ folder })
    const found = await callServer(url, 'GET', `/v1/agents/${agent.agent_id}`, first.key)
    expect(found).toMatchObject({
      status: 200,
      body: { agent_id: agent.agent_id, instructions: 'Greet people.' },
    })
    const messages = [{ role: 'user', content: 'still there' }]
    const chat = await callServer(url, 'POST', '/v1/chat/completions', agent.agent_key, { messages })
    expect(chat.body.choices[0].message.content).toBe('You said: still there')
  })
})
