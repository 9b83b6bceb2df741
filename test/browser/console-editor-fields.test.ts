/** Tests the form fields for the chat window, attachments and handover, which write to the definition's text. */
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { parse } from 'yaml'
import { startApp, type TestApp } from '../support/app.ts'
import { launchBrowser } from '../support/browser.ts'
import { openConsole } from '../support/console-ui.ts'
import { expectView } from '../support/console-views.ts'
import { KEEPER } from '../support/storing-chat.ts'

// Browsers are slow on a busy machine.
vi.setConfig({ testTimeout: 240_000, hookTimeout: 60_000 })

let browser: Browser
beforeAll(async () => {
  browser = await launchBrowser()
})
afterAll(() => browser?.close())

const switchOf = (page: Page, name: string) => page.getByRole('switch', { name })
const errorOf = (page: Page, text: string) => page.locator('.mantine-InputWrapper-error', { hasText: text })

/** Saves the draft, and returns the saved definition. */
async function save(app: TestApp, page: Page, agentId: string, version: number) {
  await page.getByRole('button', { name: 'Save' }).click()
  await page.getByText(`Saved as version ${version}`).waitFor()
  return parse((await app.call('GET', `/v1/agents/${agentId}`)).body.yaml)
}

test('the handover fields write to the definition, show errors, and stay in sync with the YAML', async () => {
  const app = await startApp()
  const { agent_id: id } = await app.createAgent(KEEPER)
  const { page, complaints } = await openConsole(app, browser, `/agents/${id}`, { width: 1440 })
  const yaml = page.getByRole('textbox', { name: 'Definition as YAML' })
  const handover = switchOf(page, 'Visitors can talk to a person')
  await handover.check({ force: true })
  await yaml.getByText('timeout: 10m').waitFor()
  await switchOf(page, 'Visitors see the name of the person who answers').uncheck({ force: true })
  await switchOf(page, 'The model can ask for a person').uncheck({ force: true })
  const wait = page.getByRole('textbox', { name: 'Wait at most' })
  await wait.fill('8d')
  await errorOf(page, 'must be at most 7 days').waitFor()
  await page.getByRole('textbox', { name: 'If no person answers' }).fill('x'.repeat(501))
  await errorOf(page, 'must be at most 500 characters').waitFor()
  expect(await page.getByRole('button', { name: 'Save' }).isDisabled()).toBe(true)
  await wait.fill('5m')
  await page.getByRole('textbox', { name: 'If no person answers' }).fill('We reply by e-mail.')
  await switchOf(page, 'Visitors can rate answers').uncheck({ force: true })
  await page.getByRole('textbox', { name: 'Wait at most' }).scrollIntoViewIfNeeded()
  await expect.poll(() => page.getByRole('button', { name: 'Save' }).isEnabled()).toBe(true)
  await expectView(page, 'edit-handover')
  expect((await save(app, page, id, 2)).conversations).toEqual({
    keep: '30d',
    visitor: { rate: false },
    handover: { timeout: '5m', showName: false, tool: false, whenNobody: 'We reply by e-mail.' },
  })

  await wait.fill('')
  await page.getByRole('textbox', { name: 'If no person answers' }).fill('')
  await switchOf(page, 'Visitors see the name of the person who answers').check({ force: true })
  await switchOf(page, 'The model can ask for a person').check({ force: true })
  expect(await handover.isChecked()).toBe(true)
  expect((await save(app, page, id, 3)).conversations.handover).toEqual({})

  await handover.uncheck({ force: true })
  expect((await save(app, page, id, 4)).conversations.handover).toBeUndefined()
  expect(complaints).toEqual([])
})

test('the fields of visitors write to the definition, and are linked with the visitor secret', async () => {
  const app = await startApp()
  const { agent_id: id } = await app.createAgent(KEEPER)
  const { page, complaints } = await openConsole(app, browser, `/agents/${id}/embed`, { width: 1440 })
  await page.getByRole('link', { name: 'Open the fields in the definition' }).click()
  const identity = page.getByLabel('Identity of visitors')
  await identity.selectOption('required')
  await page.getByRole('textbox', { name: 'Issuer' }).fill('https://shop.example.org')
  await page.getByRole('textbox', { name: 'Audience' }).fill('shop-chat')
  const keys = page.getByRole('textbox', { name: 'URL of the public keys' })
  await keys.fill('no URL')
  await errorOf(page, 'must be').waitFor()
  await keys.fill('https://shop.example.org/jwks.json')
  await page.getByRole('textbox', { name: 'Claims' }).fill('plan\ncountry')
  await expect.poll(() => page.getByRole('button', { name: 'Save' }).isEnabled()).toBe(true)
  await page.getByRole('textbox', { name: 'Claims' }).scrollIntoViewIfNeeded()
  await expectView(page, 'edit-visitors')
  const jwt = {
    issuer: 'https://shop.example.org',
    audience: 'shop-chat',
    jwksUrl: 'https://shop.example.org/jwks.json',
  }
  expect((await save(app, page, id, 2)).visitors).toEqual({
    identity: 'required',
    jwt,
    claims: ['plan', 'country'],
  })
  await page.getByRole('link', { name: 'Open the visitor secret' }).click()
  await page
    .getByRole('region', { name: 'Visitor identity' })
    .getByText('This agent has no visitor secret.')
    .waitFor()
  expect(complaints).toEqual([])
})

test('the fields of the chat window turn options on, and hide or change the disclaimer', async () => {
  const app = await startApp()
  const { agent_id: id } = await app.createAgent()
  const { page, complaints } = await openConsole(app, browser, `/agents/${id}`, { width: 1440 })
  const options = [
    'Suggest questions after each answer',
    'Visitors can dictate messages',
    'Visitors can listen to answers',
  ]
  for (const name of options) await switchOf(page, name).check({ force: true })
  const text = page.getByRole('textbox', { name: 'Disclaimer text' })
  await text.fill('x'.repeat(201))
  await errorOf(page, 'must be at most 200 characters').waitFor()
  await text.fill('Check important answers.')
  const url = page.getByRole('textbox', { name: 'Privacy link' })
  await url.fill('example.com')
  await errorOf(page, 'must be a URL that begins with https:// or http://').waitFor()
  await url.fill('https://www.example.com/privacy')
  await expect.poll(() => page.getByRole('button', { name: 'Save' }).isEnabled()).toBe(true)
  await expectView(page, 'edit-chat-window')
  expect((await save(app, page, id, 2)).embed).toEqual({
    followUps: true,
    dictation: true,
    readAloud: true,
    disclaimer: { text: 'Check important answers.', url: 'https://www.example.com/privacy' },
  })

  for (const name of options) await switchOf(page, name).uncheck({ force: true })
  await switchOf(page, 'Show a disclaimer below the input').uncheck({ force: true })
  expect(await text.count()).toBe(0)
  expect((await save(app, page, id, 3)).embed).toEqual({ disclaimer: false })
  expect(complaints).toEqual([])
})

test('the fields for attachments write to the definition and show errors', async () => {
  const app = await startApp()
  const { agent_id: id } = await app.createAgent()
  const { page, complaints } = await openConsole(app, browser, `/agents/${id}`, { width: 1440 })
  await page.getByRole('button', { name: 'Attachments' }).click()
  await switchOf(page, 'Visitors can attach files to their messages').check({ force: true })
  const image = page.getByRole('checkbox', { name: 'Images (PNG, JPEG, WebP, GIF)' })
  await image.uncheck()
  await errorOf(page, 'must name at least one type').waitFor()
  await page.getByRole('checkbox', { name: 'PDF files' }).check()
  await image.check()
  await page.getByLabel('Files per message').fill('11')
  await errorOf(page, 'must be 1 to 10').waitFor()
  await page.getByLabel('Files per message').fill('2')
  await page.getByLabel('Largest file in bytes').fill('2048')
  await expect.poll(() => page.getByRole('button', { name: 'Save' }).isEnabled()).toBe(true)
  await expectView(page, 'edit-attachments')
  expect((await save(app, page, id, 2)).attachments).toEqual({
    types: ['image', 'pdf'],
    maxCount: 2,
    maxBytes: 2048,
  })
  await switchOf(page, 'Visitors can upload larger files').check({ force: true })
  await page.getByRole('checkbox', { name: 'Archives' }).check()
  await page.getByLabel('Uploads per hour').fill('1001')
  await errorOf(page, 'must be 1 to 1000').waitFor()
  await page.getByLabel('Uploads per hour').fill('5')
  await page.getByLabel('Largest upload in bytes').fill('52428800')
  await expectView(page, 'edit-uploads')
  expect((await save(app, page, id, 3)).attachments.uploads).toEqual({
    types: ['image', 'pdf', 'text', 'document', 'archive'],
    maxBytes: 52_428_800,
    perHour: 5,
  })
  await switchOf(page, 'Visitors can attach files to their messages').uncheck({ force: true })
  expect((await save(app, page, id, 4)).attachments).toBeUndefined()
  expect(complaints).toEqual([])
})

test('a feature stays on, with an empty mapping in the YAML, when its last setting is removed', async () => {
  const app = await startApp()
  const { agent_id: id } = await app.createAgent(
    'name: Guide\ninstructions: Help.\nattachments:\n  maxCount: 2 # two\nconversations:\n  keep: 1d\n  handover:\n    button: false\n',
  )
  const { page } = await openConsole(app, browser, `/agents/${id}`)
  await switchOf(page, 'Visitors can ask for a person').check({ force: true })
  await page.getByLabel('Files per message').fill('')
  expect(await save(app, page, id, 2)).toMatchObject({
    attachments: {},
    conversations: { keep: '1d', handover: {} },
  })
  expect(await switchOf(page, 'Visitors can attach files to their messages').isChecked()).toBe(true)
})

test('the image hosts field writes to the definition, names each invalid host, and appears in the list of errors', async () => {
  const app = await startApp()
  const { agent_id: id } = await app.createAgent()
  const { page, complaints } = await openConsole(app, browser, `/agents/${id}`, { width: 1440 })
  const hosts = page.getByRole('textbox', { name: 'Image hosts' })
  await hosts.fill('images.example.com\nimages.example.com/a\nlocalhost')
  await errorOf(page, 'images.example.com/a: must be a host name').waitFor()
  const errors = page.getByRole('region', { name: 'Errors' })
  await errors
    .getByRole('button', { name: /^Image hosts: / })
    .first()
    .click()
  expect(await hosts.evaluate((field) => field === document.activeElement)).toBe(true)
  await hosts.fill(Array.from({ length: 21 }, (_, index) => `i${index}.example.com`).join('\n'))
  await errorOf(page, 'must have at most 20 hosts').waitFor()
  await hosts.fill('images.example.com\n*.example.net')
  await expect.poll(() => page.getByRole('button', { name: 'Save' }).isEnabled()).toBe(true)
  expect((await save(app, page, id, 2)).embed).toEqual({
    imageHosts: ['images.example.com', '*.example.net'],
  })
  await hosts.fill('')
  expect((await save(app, page, id, 3)).embed?.imageHosts).toBeUndefined()
  expect(complaints).toEqual([])
})
