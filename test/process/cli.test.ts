/** Tests the output, the help and the errors of the commands. */

import { cp, readdir, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import Sqlite from 'better-sqlite3'
import { describe, expect, test, vi } from 'vitest'
import packageJson from '../../package.json' with { type: 'json' }
import { makeFolder, repository, runParley, startParley, startServer } from '../support/process.ts'

// Starting processes is slow on a busy machine.
vi.setConfig({ testTimeout: 60_000 })

/** Runs a command that must succeed without warnings; returns its standard output. */
async function outputOf(words: readonly string[], folder: string, main?: string): Promise<string> {
  const { stdout, ...end } = await runParley(words, { folder, ...(main && { main }) })
  expect(end).toEqual({ code: 0, signal: null, stderr: '' })
  return stdout
}

describe('version', () => {
  test.each([[['version']], [['--version']]])('`%s` prints the package version', async (words) => {
    expect(await outputOf(words, await makeFolder())).toBe(`${packageJson.version}\n`)
  })

  test('prints JSON with --json', async () => {
    const text = await outputOf(['version', '--json'], await makeFolder())
    expect(JSON.parse(text)).toEqual({ version: packageJson.version })
  })
})

describe('the command-line help', () => {
  test.each([
    'serve',
    'keys',
    'keys create',
    'keys generate',
    'keys list',
    'keys rotate',
    'keys revoke',
    'migrate',
    'openapi',
    'version',
  ])('of `%s` has a usage line and lines of at most 80 characters', async (command) => {
    const text = await outputOf([...command.split(' '), '--help'], await makeFolder())
    expect(text).toMatch(new RegExp(`^Usage: parley ${command} .*\\n\\n\\w`))
    for (const line of text.split('\n')) expect(line.length).toBeLessThanOrEqual(80)
  })

  test('lists serve, keys, migrate, openapi and version with their descriptions', async () => {
    const text = await outputOf(['--help'], await makeFolder())
    for (const command of ['serve', 'keys', 'migrate', 'openapi', 'version']) {
      expect(text).toMatch(new RegExp(`^ {2}${command}\\b.* {2}\\w`, 'm'))
    }
  })
})

describe('a command with invalid usage', () => {
  test.each([
    ['', 'Usage: parley'],
    ['keys', 'Usage: parley keys'],
    ['serv', "error: unknown command 'serv'\n(Did you mean serve?)"],
    ['serve now', "error: too many arguments for 'serve'"],
    ['serve --port 80', "error: unknown option '--port'"],
    ['keys create', "error: required option '--name <name>' not specified"],
    ['keys create --name', "error: option '--name <name>' argument missing"],
    ['keys create --name \n', 'Must be 1 to 200 characters'],
    ['keys create --name a\tb', 'Must be 1 to 200 characters'],
    [`keys create --name ${'n'.repeat(201)}`, 'Must be 1 to 200 characters'],
    ['keys rotate', "error: missing required argument 'id'"],
    ['keys rotate abcdefghijkl --overlap 1.5', 'Must be from 0 to 2592000 seconds'],
    ['keys rotate abcdefghijkl --overlap -1', 'Must be from 0 to 2592000 seconds'],
    ['keys rotate abcdefghijkl --overlap 2592001', 'Must be from 0 to 2592000 seconds'],
    ['keys lst', "error: unknown command 'lst'\n(Did you mean list?)"],
  ])('`%s` fails with an explanation and creates nothing', async (line, sentence) => {
    const folder = await makeFolder()
    const words = line === '' ? [] : line.split(' ')
    const { code, stdout, stderr } = await runParley(words, { folder })
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
    expect(stderr).toContain(sentence)
    expect(stderr).not.toMatch(/^\s+at /m)
    expect(await readdir(folder)).toEqual([])
  })
})

describe('migrate', () => {
  test('creates a database and reports that it is up to date when it runs again', async () => {
    const folder = await makeFolder()
    const said = `${join(folder, 'data')} is up to date\n`
    expect(await outputOf(['migrate'], folder)).toBe(said)
    expect(await readdir(join(folder, 'data'))).toContain('parley.db')
    expect(await outputOf(['migrate'], folder)).toBe(said)
  })

  test('changes nothing while a server runs, and the server stays ready', async () => {
    const folder = await makeFolder()
    const server = await startServer({ folder })
    const text = await outputOf(['migrate', '--json'], folder)
    expect(JSON.parse(text)).toEqual({ data_dir: join(folder, 'data'), up_to_date: true })
    expect((await fetch(`${server.url}/readyz`)).status).toBe(200)
  })
})

describe('openapi', () => {
  test('prints the document that the server serves', async () => {
    const folder = await makeFolder()
    const document = JSON.parse(await outputOf(['openapi'], folder))
    const { url } = await startServer({ folder })
    expect(document).toEqual(await (await fetch(`${url}/openapi.json`)).json())
    expect(document.openapi).toMatch(/^3\.1\./)
  })

  test('--check fails when the committed document is missing or out of date', async () => {
    const folder = await makeFolder()
    for (const name of ['src', 'package.json']) {
      await cp(join(repository, name), join(folder, name), { recursive: true })
    }
    await symlink(join(repository, 'node_modules'), join(folder, 'node_modules'))
    const main = join(folder, 'src/main.ts')
    const outOfDate = {
      code: 1,
      signal: null,
      stdout: '',
      stderr: 'parley: openapi.json is out of date; run `npm run openapi`.\n',
    }
    expect(await runParley(['openapi', '--check'], { folder, main })).toEqual(outOfDate)
    const document = await outputOf(['openapi'], folder, main)
    await writeFile(join(folder, 'openapi.json'), document.replace('Parley', 'Parlez'))
    expect(await runParley(['openapi', '--check'], { folder, main })).toEqual(outOfDate)
    await writeFile(join(folder, 'openapi.json'), document)
    expect(await outputOf(['openapi', '--check'], folder, main)).toBe('')
  })
})

describe('any command', () => {
  test('exits with code 1 and no stack trace when its standard output is closed', async () => {
    const running = startParley(['version'], { folder: await makeFolder() })
    running.child.stdout?.destroy()
    expect(await running.ended).toMatchObject({ code: 1, stderr: '' })
  })

  test('reports a locked database in one sentence', async () => {
    const folder = await makeFolder()
    await outputOf(['migrate'], folder)
    const connection = new Sqlite(join(folder, 'data/parley.db'))
    connection.exec('BEGIN IMMEDIATE')
    const { code, stdout, stderr } = await runParley(['keys', 'create', '--name', 'ci'], { folder })
    connection.close()
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
    expect(stderr).toBe('parley: The database is not usable (database is locked).\n')
  })

  test('fails if a setting that it reads is invalid, and warns about an unknown setting', async () => {
    const env = { LOG_LEVEL: 'loud', PARLEY_DATADIR: 'x' }
    const folder = await makeFolder()
    const { code, stderr } = await runParley(['keys', 'list'], { folder, env })
    expect(code).toBe(1)
    expect(stderr).toContain('LOG_LEVEL must be one of')
    const warned = await runParley(['migrate'], { folder, env: { PARLEY_DATADIR: 'x' } })
    expect(warned.stderr).toContain('did you mean PARLEY_DATA_DIR')
  })
})
