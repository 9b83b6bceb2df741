/** Tests that the server loads the PARLEY_HOOKS module relative to its working directory. */
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { chatRequest } from '../support/chat-harness.ts'
import { callServer, makeFolder, runParley, startServer } from '../support/process.ts'
import { agentWith, CHAT } from '../support/tools.ts'

describe('the module in PARLEY_HOOKS', () => {
  test('is loaded from the working directory, and its tools run', async () => {
    const folder = await makeFolder()
    await writeFile(
      join(folder, 'hooks.mjs'),
      `export const tools = { greet: { handler: ({ name }) => 'Hello ' + name } }
       export function onUploadComplete() {}`,
    )
    const server = await startServer({ folder, env: { PARLEY_HOOKS: 'hooks.mjs' } })
    const { body: agent } = await callServer(server.url, 'POST', '/v1/agents', server.key, {
      yaml: agentWith(['greet']),
    })
    const answer = await callServer(
      server.url,
      'POST',
      CHAT,
      agent.agent_key,
      chatRequest('[[tool:greet {"name":"Ada"}]]', { model: 'mock' }),
    )
    expect(answer.body.choices[0].message.content).toBe('The tool answered: Hello Ada')
    expect((await server.stop()).code).toBe(0)
  })

  test('must exist: otherwise, the server does not start and reports a one-sentence error', async () => {
    const folder = await makeFolder()
    const { code, stderr } = await runParley(['serve'], { folder, env: { PARLEY_HOOKS: 'gone.mjs' } })
    expect([code, stderr]).toEqual([
      1,
      `parley: PARLEY_HOOKS (${join(folder, 'gone.mjs')}): the file does not exist.\n`,
    ])
  })
})
