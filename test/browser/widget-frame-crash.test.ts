/** Tests that a visitor can continue an answer in the widget frame after the server was killed. */
import { expect, onTestFinished, test, vi } from 'vitest'
import { findFreePort } from '../support/free-port.ts'
import { callServer, makeFolder, startServer } from '../support/process.ts'
import { helper, openFrame, openFramePages, visibleText } from '../support/widget-frame.ts'

vi.setConfig({ testTimeout: 90_000, hookTimeout: 60_000 })

test('an answer that was interrupted by a server crash can be continued', async () => {
  const folder = await makeFolder()
  const env = { PORT: String(await findFreePort()), PARLEY_FLUSH_MS: '50' }
  const first = await startServer({ folder, env })
  const definition = `${helper}conversations: { keep: 30d }\n`
  const { body } = await callServer(first.url, 'POST', '/v1/agents', first.key, { yaml: definition })
  const pages = await openFramePages(first.url)
  onTestFinished(() => pages.close())
  const opened = await openFrame({ ...pages, key: body.agent_key }, { isSameSite: true })
  await opened.post({ type: 'visibility', isOpen: true })
  await opened.say('[[delay:150]] one two three four five six seven eight nine ten eleven twelve the end')
  await opened.frame.locator('article.reply', { hasText: 'You said: one two three' }).waitFor()

  await first.crash()
  await startServer({ folder, env })

  await visibleText(opened.frame, 'This answer was interrupted.').waitFor()
  const reply = opened.frame.locator('article.reply').last()
  expect(await reply.locator('.prose').textContent()).toMatch(/^You said: one two/)
  await opened.frame.getByRole('button', { name: 'Continue' }).click()
  await visibleText(opened.frame, 'Your last answer was interrupted. Continue it exactly').waitFor()
  await opened.settle()
  expect(await reply.locator('.prose').count()).toBe(1)
  expect(await reply.locator('.prose').textContent()).toMatch(/^You said: one two.*You said: /)
  expect(await opened.frame.getByRole('button', { name: 'Continue' }).count()).toBe(0)
})
