/** Tests the `agents` commands, both with and without a running server. */
import { mkdir, readdir, readFile, rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test, vi } from 'vitest'
import { FULL_DEFINITION } from '../support/agents.ts'
import { runCommandInProcess } from '../support/command.ts'
import { callServer, eventually, makeFolder, startServer } from '../support/process.ts'

// Starting processes is slow on a busy machine.
vi.setConfig({ testTimeout: 60_000 })

const GREETER = '# first line\nname: Greeter\nmodel: mock\ninstructions: Greet people.\n'
const MARKDOWN = '---\nname: Wörk Über\n---\n\nHelp people.\n'

/** Runs a `parley` command that must succeed without warnings; returns its standard output. */
async function parley(folder: string, ...words: string[]): Promise<string> {
  const { stdout, ...end } = await runCommandInProcess(words, { folder })
  expect(end).toEqual({ code: 0, signal: null, stderr: '' })
  return stdout
}
const agents = (folder: string, ...words: string[]) => parley(folder, 'agents', ...words)
const listAgents = async (folder: string, ...words: string[]) =>
  JSON.parse(await agents(folder, 'list', '--json', ...words))

/** Runs an `agents` command that must fail; returns its standard error. */
async function failureOf(folder: string, ...words: string[]): Promise<string> {
  const { stderr, ...end } = await runCommandInProcess(['agents', ...words], { folder })
  expect(end).toEqual({ code: 1, signal: null, stdout: '' })
  expect(stderr).toMatch(/^parley: /)
  expect(stderr).not.toMatch(/^\s+at /m)
  return stderr
}

/** Creates a working directory with a parent key and with definition files in `agents/`. */
async function makeInstallation(files: Record<string, string | Uint8Array> = {}): Promise<string> {
  const folder = await makeFolder()
  await parley(folder, 'keys', 'create', '--name', 'first')
  await mkdir(join(folder, 'agents'))
  await putFiles(folder, files)
  return folder
}

async function putFiles(folder: string, files: Record<string, string | Uint8Array>): Promise<void> {
  for (const [name, text] of Object.entries(files)) await writeFile(join(folder, 'agents', name), text)
}

/** Applies the definition files; returns the agent ids by file name. */
async function applyFiles(folder: string, path = 'agents'): Promise<Record<string, string>> {
  const { files } = JSON.parse(await agents(folder, 'apply', path, '--yes', '--json'))
  return Object.fromEntries(files.map(({ file, id }: { file: string; id: string }) => [file, id]))
}

describe('the help', () => {
  test.each(['', ' list', ' get', ' apply', ' export', ' delete'])(
    'of `agents%s` has a usage line and lines of at most 80 characters',
    async (verb) => {
      const text = await parley(await makeFolder(), ...`agents${verb} --help`.split(' '))
      expect(text).toMatch(new RegExp(`^Usage: parley agents${verb} .*\\n\\n\\w`))
      for (const line of text.split('\n')) expect(line.length).toBeLessThanOrEqual(80)
    },
  )
})

test('parley --help lists the agents and doctor commands', async () => {
  const text = await parley(await makeFolder(), '--help')
  for (const command of ['agents', 'doctor'])
    expect(text).toMatch(new RegExp(`^ {2}${command}\\b.* {2}\\w`, 'm'))
})

describe('agents list and agents get', () => {
  test('print all agents and the exact definition of one agent', async () => {
    const untidy = `\uFEFF${GREETER.trimEnd()}`
    const folder = await makeInstallation({ 'a.yaml': untidy, 'b.md': MARKDOWN })
    const ids = await applyFiles(folder)
    const id = ids['agents/a.yaml'] as string
    const table = await agents(folder, 'list')
    expect(table).toMatch(/^ID +NAME +MODEL +CREATED +UPDATED\n/)
    expect(table).toMatch(new RegExp(`^${id} +Greeter +mock +20\\S+Z +20\\S+Z$`, 'm'))
    expect(table).toMatch(new RegExp(`^${ids['agents/b.md']} +Wörk Über +- `, 'm'))
    expect(table).not.toContain('agnt_key-')
    expect(await agents(folder, 'get', id)).toBe(untidy)
    const markdown = '---\n# first line\nname: Greeter\nmodel: mock\n---\n\nGreet people.'
    expect(await agents(folder, 'get', id, '--markdown')).toBe(markdown)
    const times = { created_at: expect.any(Number), updated_at: expect.any(Number) }
    const summary = { id, name: 'Greeter', model: 'mock', version: 1, ...times }
    expect(await listAgents(folder)).toContainEqual(summary)
    const whole = { ...summary, format: 'yaml', yaml: untidy, markdown }
    expect(JSON.parse(await agents(folder, 'get', id, '--json'))).toEqual(whole)
  })

  test('fail when the agent or the database does not exist', async () => {
    expect(await failureOf(await makeInstallation(), 'get', 'agent-x')).toContain('Agent not found.')
    expect(await failureOf(await makeFolder(), 'list')).toContain('no Parley database')
  })
})

describe('an agents command', () => {
  test("requires --key if several parent keys exist and accesses only that key's agents", async () => {
    const folder = await makeInstallation({ 'a.yaml': GREETER })
    await applyFiles(folder)
    const second = (await parley(folder, 'keys', 'create', '--name', 'second')).trim()
    const id = second.slice(4, 16)
    const failure = await failureOf(folder, 'list')
    expect(failure).toContain('choose one with --key')
    expect(failure).toContain(`${id} (second)`)
    expect(failure).toContain(' (first)')
    for (const name of [id, `svc_${id}`, second]) expect(await listAgents(folder, '--key', name)).toEqual([])
    await parley(folder, 'keys', 'revoke', id)
    expect(await listAgents(folder)).toHaveLength(1)
    expect(await failureOf(folder, 'list', '--key', id)).toContain(`no active parent key '${id}'`)
    const wrong = `${second}x`
    expect(await failureOf(folder, 'list', '--key', wrong)).not.toContain(wrong)
  })

  test('names the command that creates a parent key when none is active', async () => {
    const folder = await makeFolder()
    const key = (await parley(folder, 'keys', 'create', '--name', 'only')).trim()
    await parley(folder, 'keys', 'revoke', key)
    expect(await failureOf(folder, 'list')).toContain('parley keys create')
  })
})

describe('agents apply', () => {
  test('prints its plan and changes nothing unless --yes is set', async () => {
    const folder = await makeInstallation({ 'a.yaml': GREETER, 'notes.txt': 'no definition' })
    const plan = await agents(folder, 'apply', 'agents')
    expect(plan).toBe(
      '+ create  agents/a.yaml  "Greeter"\nNothing was changed. Add --yes to make these changes.\n',
    )
    expect(await listAgents(folder)).toEqual([])
    const json = JSON.parse(await agents(folder, 'apply', 'agents', '--json'))
    const file = { file: 'agents/a.yaml', action: 'create', id: null, name: 'Greeter' }
    expect(json).toEqual({ applied: false, files: [file], untouched: [] })
  })

  test('creates new agents, updates agents that match by name or id, and does not change others', async () => {
    const folder = await makeInstallation({ 'a.yaml': GREETER, 'b.md': MARKDOWN, 'c.yaml': FULL_DEFINITION })
    const ids = await applyFiles(folder)
    const [a, b, c] = ['a.yaml', 'b.md', 'c.yaml'].map((name) => ids[`agents/${name}`])
    await mkdir(join(folder, 'next'))
    const changed = GREETER.replace('Greeter', 'Host').replace('Greet people.', 'Welcome people.\r')
    await writeFile(join(folder, 'next', `x.${a}.yaml`), changed)
    await writeFile(join(folder, 'next', 'y.md'), MARKDOWN)
    expect((await agents(folder, 'apply', 'next', '--yes')).split('\n')).toEqual([
      `~ update  next/x.${a}.yaml  "Host" (${a})`,
      '    - name: Greeter',
      '    + name: Host',
      '    - instructions: Greet people.',
      '    + instructions: Welcome people.␍',
      `= same    next/y.md  "Wörk Über" (${b})`,
      `  unchanged, no file: "Guide" (${c})`,
      `updated ${a}`,
      '',
    ])
    const rows: { id: string; name: string; version: number }[] = await listAgents(folder)
    expect(rows.map(({ id, name, version }) => [id, name, version])).toEqual([
      [c, 'Guide', 1],
      [b, 'Wörk Über', 1],
      [a, 'Host', 2],
    ])
    expect(await agents(folder, 'get', a as string)).toBe(changed)
    expect(await agents(folder, 'apply', 'next', '--yes')).toContain('\nAll agents are up to date.\n')
  })

  test('accepts a single file and prints at most 20 removed and 20 added lines of a diff', async () => {
    const lines = (word: string) => `${GREETER}rules:\n${`  - ${word}\n`.repeat(30)}`
    const folder = await makeInstallation({ 'a.yml': lines('old') })
    await applyFiles(folder, 'agents/a.yml')
    await putFiles(folder, { 'a.yml': lines('new') })
    const plan = await agents(folder, 'apply', 'agents/a.yml')
    expect(plan.match(/^ {4}- {3}- old$/gm)).toHaveLength(20)
    expect(plan).toContain('\n    … and 40 more lines\n')
  })

  test('prints new agent keys only with --show-keys', async () => {
    const folder = await makeInstallation({ 'a.yaml': GREETER })
    expect(await agents(folder, 'apply', 'agents', '--yes')).toMatch(/\ncreated agent-[0-9A-Za-z]{20}\n$/)
    await putFiles(folder, { 'b.md': MARKDOWN, 'c.yaml': FULL_DEFINITION })
    const words = ['apply', 'agents/b.md', '--yes', '--show-keys']
    const [, key = ''] = /created \S+ (agnt_key-\S+)\n$/.exec(await agents(folder, ...words)) ?? []
    const json = JSON.parse(await agents(folder, 'apply', 'agents', '--yes', '--show-keys', '--json'))
    const keys = json.files.map((file: { agent_key?: string }) => file.agent_key)
    expect(keys).toEqual([undefined, undefined, expect.stringMatching(/^agnt_key-/)])
    const { url } = await startServer({ folder })
    for (const one of [key, keys[2]]) {
      expect((await callServer(url, 'GET', '/v1/keys/validate', one)).status).toBe(200)
    }
  })

  test('changes nothing if any file is invalid, and reports the error in each invalid file', async () => {
    const folder = await makeInstallation({
      'a.yaml': GREETER,
      'b.yaml': 'name: B\ninstructions: Hi.\ntemperature: 7\n',
      'c.md': 'no front matter',
      'd.yaml': new Uint8Array([0x6e, 0xff]),
    })
    expect((await failureOf(folder, 'apply', 'agents', '--yes')).split('\n')).toEqual([
      'parley: Nothing was changed. These files contain errors:',
      '  agents/b.yaml: temperature: must be between 0 and 2 (line 3, column 14)',
      expect.stringMatching(/^ {2}agents\/c\.md: .* \(line 1, column 1\)$/),
      '  agents/d.yaml: The file must be encoded in UTF-8.',
      '',
    ])
    expect(await listAgents(folder)).toEqual([])
  })

  test('rejects two files for the same agent, and a name that two agents share', async () => {
    const folder = await makeInstallation({ 'a.yaml': GREETER, 'b.yaml': `${GREETER}# b\n` })
    const both = 'agents/a.yaml and agents/b.yaml both describe'
    expect(await failureOf(folder, 'apply', 'agents', '--yes')).toContain(`${both} a new agent "Greeter"`)
    const id = (await applyFiles(folder, 'agents/a.yaml'))['agents/a.yaml'] as string
    expect(await failureOf(folder, 'apply', 'agents', '--yes')).toContain(`${both} the agent ${id}`)
    await putFiles(folder, { 'c.yaml': GREETER.replace('Greeter', 'Other') })
    const other = (await applyFiles(folder, 'agents/c.yaml'))['agents/c.yaml'] as string
    await putFiles(folder, { [`c.${other}.yaml`]: GREETER })
    await applyFiles(folder, `agents/c.${other}.yaml`)
    const failure = await failureOf(folder, 'apply', 'agents/b.yaml', '--yes')
    expect(failure).toContain('agents/b.yaml: several agents are named "Greeter"')
    for (const one of [id, other]) expect(failure).toContain(one)
  })

  test.each([
    ['nowhere', 'no such file or directory'],
    ['agents', 'agents contains no files whose names end in'],
    ['data/parley.db', 'is not a definition file'],
  ])('rejects the path %s with an explanation', async (path, sentence) => {
    expect(await failureOf(await makeInstallation(), 'apply', path)).toContain(sentence)
  })
})

describe('agents export', () => {
  test('writes the same files each time, which `agents apply` reports as unchanged', async () => {
    const folder = await makeInstallation({ 'a.yaml': GREETER, 'b.md': MARKDOWN, 'c.yaml': FULL_DEFINITION })
    const ids = await applyFiles(folder)
    const names = [
      `greeter.${ids['agents/a.yaml']}.yaml`,
      `guide.${ids['agents/c.yaml']}.yaml`,
      `work-uber.${ids['agents/b.md']}.md`,
    ]
    const json = JSON.parse(await agents(folder, 'export', 'out/deep', '--json'))
    expect(json).toContainEqual({
      id: ids['agents/a.yaml'],
      file: `out/deep/${names[0]}`,
      state: 'written',
    })
    expect((await readdir(join(folder, 'out/deep'))).sort()).toEqual(names)
    expect(await readFile(join(folder, 'out/deep', names[2] as string), 'utf8')).toBe(MARKDOWN)
    expect(await agents(folder, 'apply', 'out/deep', '--yes')).toContain('\nAll agents are up to date.\n')
    expect(await agents(folder, 'export', 'out/deep')).toMatch(/^(same {5}out\/deep\/\S+\n){3}$/)
  })

  test('overwrites edited files and replaces renamed files only with --force', async () => {
    const folder = await makeInstallation({ 'a.yaml': GREETER, 'b.md': MARKDOWN })
    const ids = await applyFiles(folder)
    const greeter = `greeter.${ids['agents/a.yaml']}.yaml`
    const [work, earlier] = [`work-uber.${ids['agents/b.md']}.md`, `earlier.${ids['agents/b.md']}.md`]
    const out = join(folder, 'out')
    await agents(folder, 'export', 'out')
    await writeFile(join(out, greeter), 'mine')
    await writeFile(join(out, 'README.txt'), 'mine too')
    await rename(join(out, work), join(out, earlier))
    const failure = await failureOf(folder, 'export', 'out')
    for (const name of [greeter, earlier]) expect(failure).toContain(`\n  out/${name}\n`)
    expect((await readdir(out)).sort()).toEqual(['README.txt', earlier, greeter])
    expect(await readFile(join(out, greeter), 'utf8')).toBe('mine')
    await agents(folder, 'export', 'out', '--force')
    expect((await readdir(out)).sort()).toEqual(['README.txt', greeter, work])
    expect(await readFile(join(out, greeter), 'utf8')).toBe(GREETER)
  })
})

describe('agents delete', () => {
  test('requires --yes', async () => {
    const folder = await makeInstallation({ 'a.yaml': GREETER })
    const id = (await applyFiles(folder))['agents/a.yaml'] as string
    expect(await failureOf(folder, 'delete', id)).toContain(`"Greeter" (${id})`)
    expect(await listAgents(folder)).toHaveLength(1)
    expect(JSON.parse(await agents(folder, 'delete', id, '--yes', '--json'))).toEqual({ id, deleted: true })
    expect(await listAgents(folder)).toEqual([])
    expect(await failureOf(folder, 'delete', id, '--yes')).toContain('Agent not found.')
  })
})

describe('a running server', () => {
  test('serves applied agents and rejects the keys of deleted agents within seconds', async () => {
    const folder = await makeInstallation()
    const { url, ...server } = await startServer({ folder })
    expect(server.key).toBeUndefined()
    const owner = (await parley(folder, 'keys', 'create', '--name', 'caller')).trim()
    await putFiles(folder, { 'a.yaml': GREETER })
    const words = ['--key', owner, '--yes', '--show-keys', '--json']
    const { files } = JSON.parse(await agents(folder, 'apply', 'agents', ...words))
    const { id, agent_key: key } = files[0]
    const ownName = async () => (await callServer(url, 'GET', '/v1/agents/me', key)).body.name
    expect(await eventually(ownName, 'Greeter')).toBe('Greeter')
    await putFiles(folder, { [`a.${id}.yaml`]: GREETER.replace('Greeter', 'Host') })
    await agents(folder, 'apply', `agents/a.${id}.yaml`, '--key', owner, '--yes')
    expect(await eventually(ownName, 'Host')).toBe('Host')
    await agents(folder, 'delete', id, '--key', owner, '--yes')
    const status = async () => (await callServer(url, 'GET', '/v1/agents/me', key)).status
    expect(await eventually(status, 401)).toBe(401)
  })
})
