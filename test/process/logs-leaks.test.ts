/** Tests that the leak check of the test suite also detects user content in a server process's log. */
import { expect, test } from 'vitest'
import { checkLine, takeLeaks } from '../support/log-leaks.ts'
import { makeFolder, startServer } from '../support/process.ts'

test("the leak check finds user content in a server process's output", async () => {
  const folder = await makeFolder()
  const server = await startServer({ folder, env: { LOG_LEVEL: 'debug' } })
  const said = 'a very particular sentence'
  const body = JSON.stringify({ model: 'mock', messages: [{ role: 'user', content: said }] })
  const headers = { Authorization: `Bearer ${server.key}`, 'Content-Type': 'application/json' }
  const answer = await fetch(`${server.url}/v1/chat/completions`, { method: 'POST', headers, body })
  expect(answer.status).toBe(200)
  const { stderr } = await server.stop()
  expect(stderr).toContain('"operation":"chat.completions"')
  expect(takeLeaks()).toEqual([])
  checkLine(`${stderr.split('\n')[0]} ${said}`)
  expect(takeLeaks()).toHaveLength(1)
})
