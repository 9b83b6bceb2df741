/** Tests a new operator's tasks in one browser session, from the first sign-in link to the usage report. */
import { createServer } from 'node:http'
import type { Browser, BrowserContext, FrameLocator, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from 'vitest'
import { launchBrowser } from '../support/browser.ts'
import {
  chatInPlayground,
  createFromTemplate,
  expectPlayback,
  openMenuPage,
  readKey,
  readTable,
  rowOf,
} from '../support/console-parts.ts'
import { openWindow } from '../support/console-ui.ts'
import { makeVideo } from '../support/conversion.ts'
import { listenOnOtherOrigin } from '../support/other-origin.ts'
import { callServer, makeFolder, printedLink, type RunningServer, startServer } from '../support/process.ts'

// Browsers and conversions are slow on a busy machine.
vi.setConfig({ testTimeout: 300_000, hookTimeout: 60_000 })

let browser: Browser
beforeAll(async () => {
  browser = await launchBrowser()
})
afterAll(() => browser?.close())

test('a new operator can sign in, create, change and embed an agent, rotate its key, upload a video and see the usage', async () => {
  const folder = await makeFolder()
  const [server, clip] = await Promise.all([startServer({ folder }), makeClip(`${folder}/launch.mov`)])
  const { page, context, complaints } = await openWindow(server, browser)
  await signInByPrintedLink(page, server)
  await createFromTemplate(page, 'Helpdesk')

  const facts = await chatInPlayground(page, 'Where is my order?')
  const [, asked = '', answered = ''] = /mock\/mock · (\d+) \+ (\d+) tokens · .* total/.exec(facts) ?? []
  const tried = { requests: 1, prompt_tokens: Number(asked), completion_tokens: Number(answered) }
  expect(await readUsage(server)).toEqual(tried)

  await changeAndSave(page)
  await restoreFirst(page)

  const site = await openSite(context)
  const first = await readSnippet(page)
  const widget = await site.show(first)
  await widget.getByText('Hello! What can I help you with?', { exact: true }).waitFor()
  await say(widget, 'I am on another origin')
  await widget.getByText('You said: I am on another origin').waitFor()
  const talked = await readUsage(server)
  expect(talked).toMatchObject({ requests: 2 })

  const [before, after] = await rotateKey(page, first)
  await say(widget, 'Are you still there?')
  await widget.locator('article.reply').getByText('its key is invalid').waitFor()
  expect([await validate(server, before), await validate(server, after)]).toEqual([401, 200])
  expect(await readUsage(server)).toEqual(talked)
  await openMenuPage(page, 'Agents')
  await page.getByRole('link', { name: 'Helpdesk' }).click()
  const second = await readSnippet(page)
  expect(second).toBe(first.replace(before, after))
  const renewed = await site.show(second)
  await say(renewed, 'And with the new key?')
  await renewed.getByText('You said: And with the new key?').waitFor()

  await uploadAndWatch(page, clip)
  await expectUsage(page, server, tried)
  expect(complaints).toEqual([])
})

/** Encodes a video that browsers cannot play without a conversion. */
function makeClip(path: string): Promise<string> {
  return makeVideo(path, ['-c:v', 'mpeg4', '-c:a', 'aac'], 'testsrc2=size=640x360:rate=30:duration=2')
}

async function signInByPrintedLink(page: Page, server: RunningServer): Promise<void> {
  const [, link = ''] = await server.prints(printedLink)
  await page.goto(link)
  await page.getByText('No agents yet').waitFor()
}

/** Changes one field in the form and one in the text, and saves the agent. */
async function changeAndSave(page: Page): Promise<void> {
  // Closes the playground because it covers the form and the text.
  await page.getByRole('button', { name: 'Try it' }).click()
  const text = page.getByRole('textbox', { name: 'Definition as YAML' })
  await page.getByRole('textbox', { name: 'Tone' }).fill('brisk')
  await text.getByText('tone: brisk').waitFor()
  await text.getByText('greeting: Hello!').click()
  await page.keyboard.press('End')
  await page.keyboard.type(' Be quick.')
  await expect
    .poll(() => page.getByRole('textbox', { name: 'Greeting' }).inputValue())
    .toBe('Hello! What can I help you with? Be quick.')
  await page.getByRole('button', { name: 'Save' }).click()
  await page.getByText('Saved as version 2').waitFor()
}

async function restoreFirst(page: Page): Promise<void> {
  await page.getByRole('link', { name: 'History' }).click()
  await page.getByRole('heading', { name: 'Changes from version 1 to 2' }).waitFor()
  await page.locator('.cm-changedLine', { hasText: 'tone: brisk' }).waitFor()
  await page.getByRole('button', { name: /Version 1/ }).click()
  await page.getByRole('button', { name: 'Restore' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Restore' }).click()
  await page.getByRole('button', { name: /Version 3 Live/ }).waitFor()
  await page.getByRole('link', { name: 'Edit' }).click()
  await page.getByText('Saved as version 3').waitFor()
  expect(await page.getByRole('textbox', { name: 'Tone' }).inputValue()).toBe('friendly and calm')
}

/** Returns the snippet that embeds the agent in a page. */
async function readSnippet(page: Page): Promise<string> {
  await page.getByRole('link', { name: 'Embed', exact: true }).click()
  return page.getByRole('region', { name: 'Script for the end of the page body' }).innerText()
}

/** Starts a website on another origin, and opens a tab in the same browser for it. */
async function openSite(context: BrowserContext) {
  let body = ''
  const server = createServer((_request, response) => {
    response.setHeader('Content-Type', 'text/html; charset=utf-8')
    response.end(
      `<!doctype html><html lang="en"><head><title>A shop</title></head><body>${body}</body></html>`,
    )
  })
  onTestFinished(() => void server.close())
  const origin = await listenOnOtherOrigin(server)
  const tab = await context.newPage()
  let isOpen = false
  return {
    /** Loads a page that contains the snippet, and opens the chat, which then stays open on later pages. */
    async show(snippet: string): Promise<FrameLocator> {
      body = snippet
      await tab.goto(origin)
      if (!isOpen) await tab.locator('parley-chat .launcher').click()
      isOpen = true
      return tab.frameLocator('parley-chat iframe')
    },
  }
}

async function say(widget: FrameLocator, text: string): Promise<void> {
  await widget.getByRole('textbox').fill(text)
  await widget.getByRole('textbox').press('Enter')
}

/** Rotates the agent's key; returns the key in the snippet and the new key. */
async function rotateKey(page: Page, snippet: string): Promise<[before: string, after: string]> {
  const before = /data-api-key="([^"]+)"/.exec(snippet)?.[1] ?? ''
  await openMenuPage(page, 'Keys')
  await page.getByRole('tab', { name: 'Agent keys' }).click()
  await page.getByRole('button', { name: 'Rotate the key for Helpdesk' }).click()
  await page.getByLabel('Current key').selectOption('Stops working immediately')
  await page.getByRole('button', { name: 'Rotate key' }).click()
  const after = await readKey(page)
  await page.getByText('The previous key has stopped working.').waitFor()
  await page.getByRole('button', { name: 'Done' }).click()
  return [before, after]
}

async function validate({ url }: RunningServer, key: string): Promise<number> {
  return (await callServer(url, 'GET', '/v1/keys/validate', key)).status
}

interface Noting {
  readonly states: string[]
}

/** Uploads a video, and checks that the page shows the upload's states without a reload. */
async function uploadAndWatch(page: Page, clip: string): Promise<void> {
  await openMenuPage(page, 'Uploads')
  await page.evaluate(() => {
    const states: string[] = []
    Object.assign(globalThis, { states })
    const note = () => {
      const state = document.querySelector('tbody tr td:nth-child(4)')?.textContent ?? undefined
      if (state !== undefined && state !== states.at(-1)) states.push(state)
    }
    new MutationObserver(note).observe(document.body, { subtree: true, childList: true, characterData: true })
  })
  await page.getByLabel('Files to upload').setInputFiles(clip)
  await rowOf(page, 'launch.mov').getByText('Ready', { exact: true }).waitFor({ timeout: 120_000 })
  const states = await page.evaluate(() => (globalThis as unknown as Noting).states)
  expect(states[0]).toMatch(/^(Uploading|Processing)/)
  expect(states.at(-1)).toBe('Ready')
  const poster = page.waitForResponse(/\/poster$/)
  await page.getByRole('button', { name: 'launch.mov', exact: true }).click()
  await expectPlayback(page)
  expect((await poster).status()).toBe(200)
  await page.keyboard.press('Escape')
  await page.getByRole('dialog').waitFor({ state: 'detached' })
}

type Sums = Readonly<Record<'requests' | 'prompt_tokens' | 'completion_tokens', number>>

async function readUsage({ url, key }: RunningServer): Promise<Sums> {
  const { body } = await callServer(url, 'GET', '/v1/usage', key)
  const { requests, prompt_tokens, completion_tokens } = body.total
  return { requests, prompt_tokens, completion_tokens }
}

/** Checks that the usage contains one call from the playground and two from the widget. */
async function expectUsage(page: Page, server: RunningServer, tried: Sums): Promise<void> {
  const reported = await readUsage(server)
  expect(reported.requests).toBe(3)
  expect(reported.prompt_tokens).toBeGreaterThan(tried.prompt_tokens)
  expect(reported.completion_tokens).toBeGreaterThan(tried.completion_tokens)
  await openMenuPage(page, 'Usage')
  const figures = ['3', '0', String(reported.prompt_tokens), String(reported.completion_tokens)]
  expect((await readTable(page, 'Usage by day'))[0]?.slice(1, 5)).toEqual(figures)
  await page.getByRole('radiogroup', { name: 'Group by' }).getByText('Agent').click()
  const byAgent = await readTable(page, 'Usage by agent')
  expect(byAgent.map((cells) => cells.slice(0, 5))).toEqual([['Helpdesk', ...figures]])
  await page.getByRole('radiogroup', { name: 'Keys' }).getByText('All keys').click()
  await page.getByRole('radiogroup', { name: 'Group by' }).getByText('Key').click()
  const byKey = await readTable(page, 'Usage by key')
  expect(byKey.map((cells) => cells.slice(0, 5))).toEqual([['first', ...figures]])
}
