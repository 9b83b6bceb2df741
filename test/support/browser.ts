/** Provides a real browser for tests of pages: this machine's Chromium, which contacts only the server under test. */
import { type Browser, chromium } from 'playwright-core'
import { getProgram } from './programs.ts'

/**
 * The features that Playwright disables, which this flag replaces, and the address bar popup, which loads a page
 * per window.
 */
const unneeded = [
  ...['AvoidUnnecessaryBeforeUnloadCheckSync', 'DestroyProfileOnBrowserClose', 'HttpsUpgrades'],
  ...[
    'HttpsFirstBalancedModeAutoEnable',
    'LensOverlay',
    'MediaRouter',
    'PaintHolding',
    'ThirdPartyStoragePartitioning',
  ],
  ...['AvoidCorsURLLoaderRestartOnRedirect', 'OptimizationHints', 'NetworkTimeServiceQuerying', 'AimEnabled'],
  ...['PreconnectToSearch', 'WebUIOmniboxPopup', 'WebUIOmniboxAimPopup'],
]

const options = () => ({
  executablePath: getProgram('chromium'),
  args: [
    '--no-sandbox',
    '--disable-gpu',
    '--disable-background-networking',
    `--disable-features=${unneeded.join()}`,
  ],
})

/** The Chromium of this test worker; it starts with the first file that needs it and ends with the worker. */
let shared: Promise<Browser> | undefined

/**
 * Opens a headless Chromium, which the caller closes. In a test run the files of a worker share one Chromium, and
 * closing it closes only the windows opened since.
 */
export async function launchBrowser(): Promise<Browser> {
  if (process.env.VITEST === undefined) return chromium.launch(options())
  shared ??= chromium.launch(options())
  const browser = await shared
  const before = new Set(browser.contexts())
  async function close(): Promise<void> {
    const opened = browser.contexts().filter((context) => !before.has(context))
    await Promise.all(opened.map((context) => context.close()))
  }
  return Object.create(browser, { close: { value: close } })
}
