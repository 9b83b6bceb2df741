/** Tests that the code in examples/ works and that the docs contain exact copies of it. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { chatRequest } from '../support/chat-harness.ts'
import { callServer, eventually, makeFolder, repository, startServer } from '../support/process.ts'
import { CHAT } from '../support/tools.ts'
import { readStatus, uploadWhole } from '../support/uploads.ts'

const read = (path: string) => readFile(join(repository, path), 'utf8')

test('the receptionist example calls its tool and rejects invalid arguments', async () => {
  const hooks = join(repository, 'examples/hooks.mjs')
  const { url, key } = await startServer({ folder: await makeFolder(), env: { PARLEY_HOOKS: hooks } })
  const { body: agent } = await callServer(url, 'POST', '/v1/agents', key, {
    yaml: await read('examples/receptionist.yaml'),
  })
  const ask = async (args: string) => {
    const { body } = await callServer(
      url,
      'POST',
      CHAT,
      agent.agent_key,
      chatRequest(`[[tool:find_room ${args}]]`, { model: 'mock' }),
    )
    return body.choices[0].message.content
  }
  expect(await ask('{"from":"2027-04-01"}')).toBe('The tool answered: ["Heron"]')
  expect(await ask('{"from":"2027-06-01","beds":2}')).toBe('The tool answered: ["Gull","Heron"]')
  expect(await ask('{"from":"soon"}')).toContain(
    "the arguments of 'find_room' are invalid: from must match pattern",
  )
  expect(await ask('{}')).toContain("must have required property 'from'")
})

test('the uploads example copies a completed upload', async () => {
  const folder = await makeFolder()
  const hooks = join(repository, 'examples/uploads.mjs')
  const server = await startServer({ folder, env: { PARLEY_HOOKS: hooks } })
  const target = { url: server.url, key: server.key as string, fetch }
  const project = Buffer.from('{"layers":[]}')
  const metadata = { kind: 'project', filename: 'a.json' }
  const { id } = await uploadWhole(target, project, { metadata })
  const readAcknowledged = async () => (await readStatus(target, id)).acknowledged
  expect(await eventually(readAcknowledged, true)).toBe(true)
  const { outcome } = await readStatus(target, id)
  expect(outcome).toEqual({ path: expect.stringMatching(/^copies\//), filename: 'a.json' })
  expect((await readFile(join(folder, outcome.path))).equals(project)).toBe(true)
})

test('docs/uploads.md contains the uploads example', async () => {
  expect(await read('docs/uploads.md')).toContain(`\`\`\`js\n${await read('examples/uploads.mjs')}\`\`\`\n`)
})

test('docs/library.md contains the library example', async () => {
  expect(await read('docs/library.md')).toContain(
    `\`\`\`js no-run\n${await read('examples/library.mjs')}\`\`\`\n`,
  )
})

test('docs/tools.md contains the hooks example', async () => {
  expect(await read('docs/tools.md')).toContain(`\`\`\`js\n${await read('examples/hooks.mjs')}\`\`\`\n`)
})
