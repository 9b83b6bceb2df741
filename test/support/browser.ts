/** A real browser for tests of pages: the Chromium of this machine, which asks nobody but the server under test. */
import { type Browser, chromium } from 'playwright-core'
import { getProgram } from './programs.ts'

/** Starts a headless Chromium; the test closes it. */
export async function launchBrowser(): Promise<Browser> {
  return chromium.launch({
    executablePath: getProgram('chromium'),
    args: ['--no-sandbox', '--disable-gpu', '--disable-background-networking'],
  })
}
