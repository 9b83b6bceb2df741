/** Tests the `keys` commands, both with and without a running server. */
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test, vi } from 'vitest'
import { parseKey } from '../../src/lib/api-key.ts'
import { runCommandInProcess } from '../support/command.ts'
import {
  callServer,
  eventually,
  makeFolder,
  type RunningServer,
  type RunOptions,
  runParley,
  startServer,
} from '../support/process.ts'

// Starting processes is slow on a busy machine.
vi.setConfig({ testTimeout: 60_000 })

/** Runs a `keys` command that must succeed without warnings; returns its standard output. */
async function keys(folder: string, ...words: string[]): Promise<string> {
  const { stdout, ...end } = await runCommandInProcess(['keys', ...words], { folder })
  expect(end).toEqual({ code: 0, signal: null, stderr: '' })
  return stdout
}

/** Runs a `keys` command that must fail; returns its standard error. */
async function failureOf(options: RunOptions, ...words: string[]): Promise<string> {
  const { stderr, ...end } = await runCommandInProcess(['keys', ...words], options)
  expect(end).toEqual({ code: 1, signal: null, stdout: '' })
  expect(stderr).toMatch(/^parley: [^\n]*\.\n$/)
  return stderr
}

const createKey = async (folder: string, name = 'ci') => (await keys(folder, 'create', '--name', name)).trim()
const publicIdOf = (key: string) => parseKey(key)?.publicId as string
const listKeys = async (folder: string) => JSON.parse(await keys(folder, 'list', '--json'))

const validate = async (url: string, key: string) =>
  (await callServer(url, 'GET', '/v1/keys/validate', key)).status

describe('keys create', () => {
  test('prints only the key', async () => {
    const text = await keys(await makeFolder(), 'create', '--name', 'ci')
    expect(text.endsWith('\n')).toBe(true)
    expect(parseKey(text.slice(0, -1))?.kind).toBe('parent')
  })

  test('prints the id, name and key as JSON with --json', async () => {
    const text = await keys(await makeFolder(), 'create', '--name', ' Wörk 🎉 ', '--json')
    const { key, ...rest } = JSON.parse(text)
    expect(rest).toEqual({ id: publicIdOf(key), name: 'Wörk 🎉' })
  })
})

describe("keys create during a server's first start", () => {
  test('creates a working key for each of three concurrent commands', async () => {
    const folder = await makeFolder()
    const starting = startServer({ folder })
    const create = (name: string) => runParley(['keys', 'create', '--name', name], { folder })
    const created = (await Promise.all(['a', 'b', 'c'].map(create))).map(({ stdout }) => stdout.trim())
    const { url } = await starting
    expect(await Promise.all(created.map((key) => validate(url, key)))).toEqual([200, 200, 200])
  })
})

describe('keys generate', () => {
  test('prints a new valid key each time and does not read settings or write to disk', async () => {
    const folder = await makeFolder()
    const env = { PORT: 'http', PARLEY_DATA_DIR: '/proc/nowhere' }
    const first = (await runCommandInProcess(['keys', 'generate'], { folder, env })).stdout.trim()
    const second = JSON.parse(await keys(folder, 'generate', '--json'))
    expect(parseKey(first)?.kind).toBe('parent')
    expect(second).toEqual({ id: publicIdOf(second.key), key: second.key })
    expect(second.key).not.toBe(first)
    expect(await readdir(folder)).toEqual([])
  })
})

describe('keys list', () => {
  test('shows the id, name, hint and state of each key but never the secret', async () => {
    const folder = await makeFolder()
    const [old, current] = [await createKey(folder, 'old'), await createKey(folder, 'in use')]
    await keys(folder, 'revoke', publicIdOf(old))
    const text = await keys(folder, 'list')
    expect(text.split('\n')[0]).toMatch(/^ID +NAME +KEY +CREATED +LAST USED +STATE$/)
    expect(text).toMatch(
      new RegExp(`^${publicIdOf(current)} +in use +svc_…${current.slice(-4)} +20.* - +active$`, 'm'),
    )
    expect(text).toMatch(new RegExp(`^${publicIdOf(old)} +old .* revoked 20\\S+Z$`, 'm'))
    for (const key of [old, current]) expect(text).not.toContain(key.slice(16, -4))
  })

  test('prints all documented fields but no secret with --json', async () => {
    const folder = await makeFolder()
    const key = await createKey(folder)
    expect(await listKeys(folder)).toEqual([
      {
        id: publicIdOf(key),
        name: 'ci',
        hint: `svc_…${key.slice(-4)}`,
        created_at: expect.any(Number),
        rotated_at: null,
        revoked_at: null,
        last_used_at: null,
        user_id: null,
        is_automatic: false,
        disabled_at: null,
        expires_at: null,
        requests_per_minute: null,
        max_streams: null,
        can_manage_keys: false,
        managed_by: null,
      },
    ])
  })
})

describe('keys rotate and keys revoke', () => {
  test('accept an id, an id with its prefix, or a complete key', async () => {
    const folder = await makeFolder()
    const key = await createKey(folder)
    const id = publicIdOf(key)
    for (const name of [id, `svc_${id}`, key]) {
      const { key: next, ...rest } = JSON.parse(await keys(folder, 'rotate', name, '--json'))
      expect(rest).toEqual({ id, previous_valid_until: expect.any(Number) })
      expect(publicIdOf(next)).toBe(id)
    }
    expect(JSON.parse(await keys(folder, 'revoke', key, '--json'))).toEqual({ id, revoked: true })
  })

  test('reject malformed ids without printing them, and reject unknown and revoked keys', async () => {
    const folder = await makeFolder()
    const key = await createKey(folder)
    const id = publicIdOf(key)
    for (const name of [`${key.slice(0, -1)}!`, `${id}1`, key.slice(0, 40), 'svc_scoped_x']) {
      const text = await failureOf({ folder }, 'revoke', name)
      expect(text).toContain('is not the id of a parent key')
      expect(text).not.toContain(name)
    }
    expect(await failureOf({ folder }, 'revoke', 'zzzzzzzzzzzz')).toContain(
      "Parent key 'zzzzzzzzzzzz' does not exist",
    )
    expect(await listKeys(folder)).toMatchObject([{ revoked_at: null }])
    expect(await keys(folder, 'revoke', id)).toBe(`revoked ${id}\n`)
    for (const verb of ['revoke', 'rotate']) {
      expect(await failureOf({ folder }, verb, id)).toContain(
        `Parent key '${id}' does not exist or was revoked`,
      )
    }
  })
})

describe('without a database', () => {
  test.each([['list'], ['rotate', 'abcdefghijkl'], ['revoke', 'abcdefghijkl']])(
    'keys %s reports the path that it searched and creates nothing',
    async (...words) => {
      const folder = await makeFolder()
      expect(await failureOf({ folder }, ...words)).toContain(`no Parley database in ${join(folder, 'data')}`)
      expect(await readdir(folder)).toEqual([])
    },
  )

  test('keys create fails when PARLEY_DATA_DIR is :memory:', async () => {
    const options = { folder: await makeFolder(), env: { PARLEY_DATA_DIR: ':memory:' } }
    expect(await failureOf(options, 'create', '--name', 'ci')).toContain('PARLEY_DATA_DIR=:memory:')
  })
})

describe('a running server', () => {
  const yaml = 'name: Greeter\ninstructions: Greet people.\n'

  /** Starts a server that has already cached the key. */
  async function startWith(folder: string, key: string): Promise<RunningServer> {
    const server = await startServer({ folder })
    expect(await validate(server.url, key)).toBe(200)
    return server
  }

  test('accepts a key within seconds of its creation by a command', async () => {
    const folder = await makeFolder()
    const { url } = await startWith(folder, await createKey(folder))
    const key = await createKey(folder, 'second')
    expect(await eventually(() => validate(url, key), 200)).toBe(200)
  })

  test("rejects a revoked key and its agents' keys within seconds", async () => {
    const folder = await makeFolder()
    const key = await createKey(folder)
    const { url } = await startWith(folder, key)
    const { body: agent } = await callServer(url, 'POST', '/v1/agents', key, { yaml })
    expect(await validate(url, agent.agent_key)).toBe(200)
    await keys(folder, 'revoke', key)
    expect(await eventually(() => validate(url, key), 401)).toBe(401)
    expect(await eventually(() => validate(url, agent.agent_key), 401)).toBe(401)
  })

  test('rejects the old key within seconds of a rotation, and the new key retains access to the agents', async () => {
    const folder = await makeFolder()
    const key = await createKey(folder)
    const { url } = await startWith(folder, key)
    const { body: agent } = await callServer(url, 'POST', '/v1/agents', key, { yaml })
    const next = (await keys(folder, 'rotate', publicIdOf(key))).trim()
    expect(await eventually(() => validate(url, next), 200)).toBe(200)
    expect(await eventually(() => validate(url, key), 401)).toBe(401)
    expect((await callServer(url, 'GET', `/v1/agents/${agent.agent_id}`, next)).status).toBe(200)
  })
})

describe('a key rotated with an overlap', () => {
  test('is valid at the same time as the previous key, whose end of validity is printed', async () => {
    const folder = await makeFolder()
    const key = await createKey(folder)
    const before = Math.floor(Date.now() / 1000)
    const words = ['rotate', publicIdOf(key), '--overlap', '3600', '--json']
    const { key: next, previous_valid_until } = JSON.parse(await keys(folder, ...words))
    expect(previous_valid_until).toBeGreaterThanOrEqual(before + 3600)
    expect(previous_valid_until).toBeLessThanOrEqual(Date.now() / 1000 + 3600)
    const { url } = await startServer({ folder })
    expect([await validate(url, key), await validate(url, next)]).toEqual([200, 200])
  })
})

describe('keys update, disable and enable', () => {
  test('change the stored key and report each change', async () => {
    const folder = await makeFolder()
    const key = await createKey(folder)
    const id = publicIdOf(key)
    const set = ['--name', 'shop', '--manage-keys', '--expires', '2100-01-31', '--max-streams', '3']
    expect(await keys(folder, 'update', id, ...set)).toBe(`updated ${id}\n`)
    const stored = { name: 'shop', can_manage_keys: true, expires_at: 4_105_036_800, max_streams: 3 }
    expect(await listKeys(folder)).toMatchObject([stored])
    const removed = ['--no-manage-keys', '--expires', 'never', '--max-streams', 'none', '--json']
    const none = { name: 'shop', can_manage_keys: false, expires_at: null, max_streams: null }
    expect(JSON.parse(await keys(folder, 'update', key, ...removed))).toMatchObject({ id, ...none })
    expect(await keys(folder, 'disable', id)).toBe(`disabled ${id}\n`)
    expect(await keys(folder, 'list')).toMatch(/ disabled 20\S+Z\n$/)
    expect(await keys(folder, 'enable', id)).toBe(`enabled ${id}\n`)
    expect(await keys(folder, 'list')).toMatch(/ active\n$/)
  })

  test("reject an unknown id, an empty change, a past expiry and a limit above the server's", async () => {
    const folder = await makeFolder()
    const id = publicIdOf(await createKey(folder))
    expect(await failureOf({ folder }, 'disable', 'A'.repeat(12))).toContain('does not exist')
    expect(await failureOf({ folder }, 'update', id)).toContain('nothing to change')
    expect(await failureOf({ folder }, 'update', id, '--expires', '2020-01-31')).toContain('expires_at')
    expect(await failureOf({ folder }, 'update', id, '--requests-per-minute', '601')).toContain('at most 600')
  })
})

describe('a key created with --manage-keys', () => {
  test('can create keys on a running server, and these remain valid after it is disabled', async () => {
    const folder = await makeFolder()
    const server = await startServer({ folder })
    const { key } = JSON.parse(await keys(folder, 'create', '--name', 'boss', '--manage-keys', '--json'))
    const created = await callServer(server.url, 'POST', '/v1/keys', key, { name: 'shop' })
    expect(created.status).toBe(201)
    await keys(folder, 'disable', publicIdOf(key))
    expect(await eventually(() => validate(server.url, key), 401)).toBe(401)
    expect(await validate(server.url, created.body.key)).toBe(200)
  })
})

describe('keys revoke --with-created', () => {
  test('revokes a key and the keys that it created on a running server, and prints their ids', async () => {
    const folder = await makeFolder()
    const { url } = await startServer({ folder })
    const managing = (await keys(folder, 'create', '--name', 'boss', '--manage-keys')).trim()
    const unrelated = await createKey(folder)
    const create = async (name: string) =>
      (await callServer(url, 'POST', '/v1/keys', managing, { name })).body.key
    const created: string[] = [await create('one'), await create('two')]
    const text = await keys(folder, 'revoke', publicIdOf(managing), '--with-created')
    const [first, ...others] = text.trim().split('\n')
    expect(first).toBe(`revoked ${publicIdOf(managing)}`)
    expect(others.toSorted()).toEqual(created.map((key) => `revoked ${publicIdOf(key)}`).toSorted())
    for (const key of [managing, ...created])
      expect(await eventually(() => validate(url, key), 401)).toBe(401)
    expect(await validate(url, unrelated)).toBe(200)
  })

  test('prints an empty list of created keys with --json for a key that has created no keys', async () => {
    const folder = await makeFolder()
    const key = await createKey(folder)
    const result = JSON.parse(await keys(folder, 'revoke', key, '--with-created', '--json'))
    expect(result).toEqual({ id: publicIdOf(key), revoked: true, created_keys_revoked: [] })
  })

  test('is required to revoke created keys; without it, they remain valid', async () => {
    const folder = await makeFolder()
    const { url } = await startServer({ folder })
    const managing = (await keys(folder, 'create', '--name', 'boss', '--manage-keys')).trim()
    const { body } = await callServer(url, 'POST', '/v1/keys', managing, { name: 'shop' })
    const id = publicIdOf(managing)
    expect(JSON.parse(await keys(folder, 'revoke', id, '--json'))).toEqual({ id, revoked: true })
    expect(await eventually(() => validate(url, managing), 401)).toBe(401)
    expect(await validate(url, body.key)).toBe(200)
  })
})
