/** A real browser for tests of pages: the Chromium of this machine, which asks nobody but the server under test. */
import { type Browser, chromium } from 'playwright-core'
import { getProgram } from './programs.ts'

/** What Playwright turns off, which this switch replaces; and the menu of the address bar, which each window would load a page for. */
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

/** The Chromium of this test worker: it starts with the first file that needs it, and ends with the worker. */
let shared: Promise<Browser> | undefined

/**
 * Opens a headless Chromium; the caller closes it. In a test run the test files of a worker share one Chromium, and closing it
 * closes only the windows that were opened since.
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
