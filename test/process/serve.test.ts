/** What `serve` does with settings and directories it cannot use: one sentence for the operator, exit 1, no stack. */
import { spawnSync } from 'node:child_process'
import { chmod, mkdir, readdir, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test, vi } from 'vitest'
import { callServer, makeFolder, type RunOptions, runParley, startServer } from '../support/process.ts'

// These start processes, which takes its time on a busy machine.
vi.setConfig({ testTimeout: 60_000 })

const isRoot = process.getuid?.() === 0
const asNobody = ['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups']
const cannotBeNobody = isRoot && spawnSync('setpriv', ['--version']).status !== 0

/** What `serve` complains about; it fails unless the process ended in order, with nothing but its complaint. */
async function complaint(options: RunOptions): Promise<string> {
  const { stderr, ...end } = await runParley(['serve'], { ...options, env: { PORT: '0', ...options.env } })
  expect(end).toEqual({ code: 1, signal: null, stdout: '' })
  expect(stderr).toMatch(/^parley: /)
  expect(stderr).not.toMatch(/^\s+at /m)
  return stderr
}

/** The only line of a complaint that has one. */
async function sentence(options: RunOptions): Promise<string> {
  const text = await complaint(options)
  expect(text.match(/\n/g)).toHaveLength(1)
  return text.trim()
}

describe('a bad setting', () => {
  test('is refused together with every other one, and never with its value', async () => {
    const text = await complaint({
      folder: await makeFolder(),
      env: {
        PORT: 'http',
        LOG_LEVEL: 'loud',
        PARLEY_SECRET: 'a short secret',
        PARLEY_PARENT_KEY: 'svc_typo',
        DATABASE_URL: 'postgres://me:hunter2@db',
        PARLEY_BACKEND: 'gateway',
      },
    })
    for (const name of ['PORT', 'LOG_LEVEL', 'PARLEY_SECRET', 'PARLEY_PARENT_KEY', 'DATABASE_URL']) {
      expect(text).toMatch(new RegExp(`^ {2}- ${name} .*\\.$`, 'm'))
    }
    expect(text).toContain('PARLEY_GATEWAY_URL is missing; PARLEY_BACKEND=gateway needs it.')
    expect(text).not.toMatch(/loud|a short secret|svc_typo|hunter2/)
  })

  test('leaves no trace on the disk', async () => {
    const folder = await makeFolder()
    await complaint({ folder, env: { LOG_LEVEL: 'loud' } })
    expect(await readdir(folder)).toEqual([])
  })

  test('of an address this machine does not have is named', async () => {
    expect(await sentence({ folder: await makeFolder(), env: { HOST: '192.0.2.1' } })).toBe(
      'parley: This machine has no address 192.0.2.1; set HOST to one of its addresses.',
    )
  })

  test('of a host name nobody knows is a sentence, whether a resolver answers or not', async () => {
    expect(await sentence({ folder: await makeFolder(), env: { HOST: 'nowhere.invalid' } })).toContain(
      'nowhere.invalid',
    )
  })

  test('with an unknown name is a warning that names the nearest, and the service starts', async () => {
    const server = await startServer({ folder: await makeFolder(), env: { PARLEY_DATADIR: '/elsewhere' } })
    expect(server.stderr).toBe(
      'warning: PARLEY_DATADIR is not a setting and is ignored; the nearest is PARLEY_DATA_DIR.\n',
    )
  })
})

describe('.env in the working directory', () => {
  test('is read, and counts where the environment says nothing', async () => {
    const folder = await makeFolder()
    await writeFile(join(folder, '.env'), 'PARLEY_DATA_DIR=./from-file\nLOG_LEVEL=loud\nPORT=0\n')
    const server = await startServer({ folder, env: { LOG_LEVEL: 'error', PORT: ' ' } })
    expect((await readdir(folder)).sort()).toEqual(['.env', 'from-file'])
    expect((await server.stop()).code).toBe(0)
  })

  test('that cannot be read is refused with its path', async () => {
    const folder = await makeFolder()
    await mkdir(join(folder, '.env'))
    const text = await sentence({ folder })
    expect(text).toContain(join(folder, '.env'))
    expect(text).toContain('EISDIR')
  })
})

describe('a data directory', () => {
  test('with other files and no database is refused with the name of one, and stays as it was', async () => {
    const folder = await makeFolder()
    await mkdir(join(folder, 'data'))
    await writeFile(join(folder, 'data', 'thesis.txt'), 'mine')
    expect(await sentence({ folder })).toContain('(such as thesis.txt)')
    expect(await readdir(join(folder, 'data'))).toEqual(['thesis.txt'])
  })

  test.skipIf(cannotBeNobody)(
    'that this user may not write is refused with its path and the user',
    async () => {
      const folder = await makeFolder()
      await chmod(folder, 0o755)
      await mkdir(join(folder, 'data'), { mode: 0o555 })
      const text = await sentence({ folder, wrapper: isRoot ? asNobody : [] })
      expect(text).toMatch(/The data directory \S+\/data cannot be used by .*uid \d+.* \(EACCES\)/)
    },
  )

  test('in use by a server is refused to a second one, which names the process', async () => {
    const folder = await makeFolder()
    const first = await startServer({ folder })
    expect(await sentence({ folder })).toMatch(
      new RegExp(`Another Parley server \\(process ${first.pid}\\) is using the data directory \\S+/data;`),
    )
    expect((await callServer(first.url, 'GET', '/readyz')).status).toBe(200)
  })
})

describe('a secret', () => {
  /** A stopped installation with one agent in it. */
  async function makeInstallation(env: Record<string, string> = {}): Promise<string> {
    const folder = await makeFolder()
    const server = await startServer({ folder, env })
    const yaml = 'name: Greeter\ninstructions: Greet people.\n'
    expect((await callServer(server.url, 'POST', '/v1/agents', server.key, { yaml })).status).toBe(201)
    await server.stop()
    return folder
  }

  test('that is lost is asked for by path, not made anew; back in place the service starts', async () => {
    const folder = await makeInstallation()
    const [secret, aside] = [join(folder, 'data/secret'), join(folder, 'aside')]
    await rename(secret, aside)
    const text = await sentence({ folder })
    expect(text).toContain(`${secret} is missing`)
    expect(text).toContain('PARLEY_SECRET')
    expect(await readdir(join(folder, 'data'))).not.toContain('secret')
    await rename(aside, secret)
    expect((await (await startServer({ folder })).stop()).code).toBe(0)
  })

  test('other than the one the agent keys were sealed with is refused', async () => {
    const folder = await makeInstallation()
    const text = await sentence({ folder, env: { PARLEY_SECRET: 'o'.repeat(48) } })
    expect(text).toContain('sealed with another secret')
    expect(text).not.toContain('ooo')
  })

  test('replaced in its file is refused too', async () => {
    const folder = await makeInstallation()
    await writeFile(join(folder, 'data/secret'), 'x'.repeat(48))
    expect(await sentence({ folder })).toContain('sealed with another secret')
  })

  test('given by PARLEY_SECRET is the one to give again', async () => {
    const env = { PARLEY_SECRET: 'a master key that is certainly longer than 32 bytes' }
    const folder = await makeInstallation(env)
    expect(await readdir(join(folder, 'data'))).not.toContain('secret')
    expect(await sentence({ folder })).toContain('PARLEY_SECRET')
    expect((await (await startServer({ folder, env })).stop()).code).toBe(0)
  })

  test('is free to change while there is no agent', async () => {
    const folder = await makeFolder()
    await (await startServer({ folder })).stop()
    await rm(join(folder, 'data/secret'))
    expect((await (await startServer({ folder })).stop()).code).toBe(0)
  })
})
