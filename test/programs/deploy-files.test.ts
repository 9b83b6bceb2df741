/** Tests the files in `deploy/` and compose.yaml; some tests need openssl or systemd. */
import { execFile } from 'node:child_process'
import { cp, readdir, readFile, stat, writeFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import { findCommand } from '../../scripts/programs.mjs'
import { configOf, image, moveFiles, readRepositoryFile } from '../support/deploy-files.ts'
import { readEnvironment } from '../support/dockerfile.ts'
import { forgeKey } from '../support/forge-key.ts'
import { makeFolder, repository } from '../support/process.ts'

const run = promisify(execFile)
const built = readEnvironment(image)

const parentKey = forgeKey('svc_', '5'.repeat(55))

describe('deploy/make-secrets.sh with compose.yaml', () => {
  /** Replaces variables with their default values. */
  const fillIn = (text: string) => text.replaceAll(/\$\{\w+:-([^}]*)\}/g, '$1')
  const load = async () => parse(fillIn(await readRepositoryFile('compose.yaml')), { merge: true })

  /** Runs the secrets script and adds a parent key, as operators do; returns the secrets' folder. */
  async function makeSecrets(): Promise<string> {
    const folder = await makeFolder()
    await cp(join(repository, 'deploy'), join(folder, 'deploy'), { recursive: true })
    await run('sh', [join(folder, 'deploy/make-secrets.sh')], { cwd: '/' })
    await writeFile(join(folder, 'secrets/parent_key'), `${parentKey}\n`)
    return join(folder, 'secrets')
  }

  test('provides both replicas with valid settings and secrets', async () => {
    const { services, secrets } = await load()
    const folder = await makeSecrets()
    const files = Object.values(secrets as Record<string, { file: string }>).map(({ file }) => basename(file))
    expect((await readdir(folder)).sort()).toEqual(files.sort())
    for (const name of ['parley-1', 'parley-2']) {
      const moved = moveFiles(services[name].environment, '/run/secrets/', folder)
      const config = await configOf({ ...built, ...moved })
      const password = (await readFile(join(folder, 'postgres_password'), 'utf8')).trim()
      expect(config.databaseUrl).toBe(`postgres://parley:${password}@postgres:5432/parley`)
      expect(config.redisUrl).toMatch(/^redis:\/\/:[0-9a-f]{64}@redis:6379\/0$/)
      expect(config.s3).toMatchObject({ endpoint: 'http://s3:7070', bucket: 'parley', forcePathStyle: true })
    }
  })

  test('keeps existing secrets when it runs again, in a folder that only its owner can open', async () => {
    const folder = await makeSecrets()
    const before = await readFile(join(folder, 'parley_secret'), 'utf8')
    await run('sh', [join(folder, '../deploy/make-secrets.sh')])
    expect(await readFile(join(folder, 'parley_secret'), 'utf8')).toBe(before)
    expect((await stat(folder)).mode & 0o777).toBe(0o700)
  })
})

describe('deploy/parley.service', () => {
  test.runIf(findCommand(['systemd-analyze']))('passes systemd-analyze verify', async () => {
    const folder = await makeFolder()
    const path = join(folder, 'parley.service')
    // Uses a program and a user that exist here, because systemd-analyze checks both.
    const unit = (await readRepositoryFile('deploy/parley.service'))
      .replaceAll('/opt/parley/node_modules/.bin/node', process.execPath)
      .replaceAll('=parley\n', '=daemon\n')
    await writeFile(path, unit)
    const { stderr } = await run('systemd-analyze', ['verify', '--man=no', path])
    expect(stderr).toBe('')
  })
})
