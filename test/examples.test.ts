/** The examples do what they say, and the README shows them as they are. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { say } from './support/chat-stand.ts'
import { callServer, makeFolder, repository, startServer } from './support/process.ts'
import { CHAT } from './support/tools.ts'

const read = (path: string) => readFile(join(repository, path), 'utf8')

test('a tool in twenty lines', async () => {
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
      say(`[[tool:find_room ${args}]]`, { model: 'mock' }),
    )
    return body.choices[0].message.content
  }
  expect(await ask('{"from":"2027-04-01"}')).toBe('The tool answered: ["Heron"]')
  expect(await ask('{"from":"2027-06-01","beds":2}')).toBe('The tool answered: ["Gull","Heron"]')
  expect(await ask('{"from":"soon"}')).toContain(
    "the arguments of 'find_room' are wrong: from must match pattern",
  )
  expect(await ask('{}')).toContain("must have required property 'from'")
})

test('the README shows it', async () => {
  expect(await read('README.md')).toContain(`\`\`\`js\n${await read('examples/hooks.mjs')}\`\`\`\n`)
})
