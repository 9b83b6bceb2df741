/** Tests which MCP servers the configuration file sets, and the error for each invalid value. */
import { describe, expect, test } from 'vitest'
import { parseFile, problemsOf } from '../support/config-file.ts'

const serversOf = async (text: string, env: Record<string, string> = {}) =>
  (await parseFile(text, env)).config.mcp

describe('the configured MCP servers', () => {
  test('are read from the file in order', async () => {
    const text = `mcp:
  near:
    url: http://127.0.0.1:8001/mcp?region=eu
    headers: { Authorization: "Bearer \${TOKEN}", X-Empty: "" }
  files:
    command: npx
    args: [-y, a package, ""]
    env: { LANG: C, TOKEN: "\${TOKEN}" }
    cwd: ./here
  bare: { command: /bin/server }
  plain: { url: https://mcp.example.org }
`
    expect(await serversOf(text, { TOKEN: 'secret', PATH: '/bin' })).toEqual([
      {
        kind: 'http',
        name: 'near',
        url: 'http://127.0.0.1:8001/mcp?region=eu',
        headers: { Authorization: 'Bearer secret', 'X-Empty': '' },
      },
      {
        kind: 'stdio',
        name: 'files',
        command: 'npx',
        args: ['-y', 'a package', ''],
        env: { PATH: '/bin', LANG: 'C', TOKEN: 'secret' },
        cwd: './here',
      },
      { kind: 'stdio', name: 'bare', command: '/bin/server', args: [], env: { PATH: '/bin' } },
      { kind: 'http', name: 'plain', url: 'https://mcp.example.org', headers: {} },
    ])
  })

  test('may have their own PATH', async () => {
    const [server] = await serversOf('mcp: { a: { command: x, env: { PATH: /opt } } }', { PATH: '/bin' })
    expect(server).toMatchObject({ env: { PATH: '/opt' } })
  })

  test('do not affect the providers', async () => {
    const { config } = await parseFile('mcp: { a: { command: x } }')
    expect(config.providers).toEqual([{ kind: 'mock', name: 'mock' }])
  })
})

describe('the error for an invalid mcp section', () => {
  const URL_RULE = 'must be an http or https URL without credentials or fragment'
  const NAME_RULE =
    'a name must be 1 to 32 lowercase letters, digits, - and _, and start with a letter or digit'
  const TRANSPORT_RULE = 'must have either url or command, not both'

  test.each<[server: string, problem: string]>([
    ['text', 'mcp.a: must be a mapping'],
    ['{}', `mcp.a: ${TRANSPORT_RULE}`],
    ['{ url: https://a.org, command: x }', `mcp.a: ${TRANSPORT_RULE}`],
    ['{ url: ftp://a.org }', `mcp.a.url: ${URL_RULE}`],
    ['{ url: "https://u:secret@a.org" }', `mcp.a.url: ${URL_RULE}`],
    ['{ url: "https://a.org#x" }', `mcp.a.url: ${URL_RULE}`],
    ['{ url: https://a.org, args: [] }', 'mcp.a.args: is not a known key; the closest match is url'],
    ['{ url: https://a.org, headers: [] }', 'mcp.a.headers: must be a mapping of names to strings'],
    ['{ url: https://a.org, headers: { a b: c } }', 'mcp.a.headers["a b"]: is not a valid header name'],
    [
      '{ url: https://a.org, headers: { A: "secret\\n" } }',
      'mcp.a.headers.A: must be ASCII without control characters',
    ],
    ['{ url: https://a.org, headers: { A: 7 } }', 'mcp.a.headers.A: must be a string; put it in quotes'],
    ['{ command: "" }', 'mcp.a.command: must not be empty'],
    ['{ command: "a\\0b" }', 'mcp.a.command: must not contain the character U+0000'],
    ['{ command: x, args: y }', 'mcp.a.args: must be a list of strings'],
    ['{ command: x, args: [1] }', 'mcp.a.args[0]: must be a string; put it in quotes'],
    ['{ command: x, env: { a-b: c } }', 'mcp.a.env.a-b: is not a valid variable name'],
    ['{ command: x, env: { A: 7 } }', 'mcp.a.env.A: must be a string; put it in quotes'],
    [`{ command: x, env: { A: "\${GONE}" } }`, 'mcp.a.env.A: refers to GONE, which is not set'],
    ['{ command: x, cwd: "" }', 'mcp.a.cwd: must not be empty'],
  ])('names the invalid field in %s', async (server, problem) => {
    const [said, ...others] = await problemsOf(`mcp:\n  a: ${server}\n`)
    expect([said?.replace(/ \(line 2, column \d+\)\.$/, ''), others]).toEqual([`<file>: ${problem}`, []])
  })

  test.each<[name: string, problem: string]>([
    ['A', NAME_RULE],
    ['a__b', 'a name must not contain __'],
  ])('reports the position of the invalid server name %s', async (name, problem) => {
    expect(await problemsOf(`mcp:\n  ${name}: { command: x }\n`)).toEqual([
      `<file>: mcp.${name}: ${problem} (line 2, column 3).`,
    ])
  })

  test('reports the position of an mcp section that is a list', async () => {
    expect(await problemsOf('mcp: []\n')).toEqual([
      '<file>: mcp: must be a mapping of names to MCP servers (line 1, column 1).',
    ])
  })
})
