/** Tests the `visitors` commands, with and without a running server. */
import { cp, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test, vi } from 'vitest'
import { runCommandInProcess } from '../support/command.ts'
import { callServer, makeFolder, startServer } from '../support/process.ts'
import { storingAgent } from '../support/stored-chats.ts'
import { listArtifactBytes } from '../support/uploads.ts'
import { sendUpload, upload, uploadAgent, uploadRules } from '../support/visitor-uploads.ts'
import { beginSession, sayAndWait } from '../support/visitors.ts'

vi.setConfig({ testTimeout: 90_000 })

test('commands can find, export and erase a visitor, and erase the visitor again after a restore', async () => {
  const folder = await makeFolder()
  const server = await startServer({ folder })
  const { body: agent } = await callServer(server.url, 'POST', '/v1/agents', server.key, {
    yaml: storingAgent(),
  })
  const one = await beginSession(server as never, agent.agent_key)
  await sayAndWait(one, 'A canary in the text.')
  const parley = (...words: string[]) => runCommandInProcess(['visitors', ...words], { folder })
  const found = await parley('find', one.id.slice(8))
  expect(found.stdout).toMatch(new RegExp(`ID +KEY +KIND .*\n${one.id} .* anonymous`))
  const exported = await parley('export', one.id)
  const objects = exported.stdout
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line).object)
  expect(objects).toEqual(['visitor', 'turn', 'export.end'])
  await server.stop()
  await cp(join(folder, 'data'), join(folder, 'saved'), { recursive: true })
  expect((await parley('erase', one.id)).stderr).toContain('add --yes to confirm')
  const erased = await parley('erase', one.id, '--yes', '--json')
  const receipt = JSON.parse(erased.stdout)
  expect(receipt).toMatchObject({
    status: 'done',
    visitor_id: one.id,
    counts: { conversations: 1, turns: 1 },
  })
  expect((await parley('export', one.id)).stderr).toContain(`There is no visitor ${one.id}`)
  await cp(join(folder, 'saved'), join(folder, 'data'), { recursive: true, force: true })
  await writeFile(join(folder, 'receipts'), `${erased.stdout}\n`)
  expect(JSON.parse((await parley('find', one.id, '--json')).stdout)).toHaveLength(1)
  const again = await parley('erase', '--receipts', join(folder, 'receipts'), '--yes')
  expect(again.stdout).toBe(`erased ${one.id}: 1 conversations, 1 turns\n`)
  const once = await parley('erase', '--receipts', join(folder, 'receipts'), '--yes')
  expect([once.code, once.stderr]).toEqual([0, expect.stringContaining(`${one.id} has no data.`)])
})

test("a command that erases a visitor also deletes the visitor's uploads, whether or not they were sent", async () => {
  const folder = await makeFolder()
  const server = await startServer({ folder })
  const { body: agent } = await callServer(server.url, 'POST', '/v1/agents', server.key, {
    yaml: uploadAgent(uploadRules),
  })
  const app = { ...server, fetch } as never
  const [one, other] = [await beginSession(app, agent.agent_key), await beginSession(app, agent.agent_key)]
  await sendUpload(one, await upload(app, one))
  await upload(app, one)
  const { id: kept } = await upload(app, other)
  await server.stop()
  const list = () => listArtifactBytes(join(folder, 'data'))
  expect((await list()).kept).toHaveLength(3)
  const erased = await runCommandInProcess(['visitors', 'erase', one.id, '--yes', '--json'], { folder })
  expect(JSON.parse(erased.stdout)).toMatchObject({ status: 'done', counts: { conversations: 1 } })
  expect((await list()).kept).toHaveLength(1)
  const restarted = await startServer({ folder })
  const { body } = await callServer(restarted.url, 'GET', '/v1/artifacts', server.key)
  expect(body.data).toMatchObject([{ artifactId: kept }])
})
