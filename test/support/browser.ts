/** Starts the Chromium that browser tests use, without background network requests. */
import { type Browser, chromium } from 'playwright-core'
import { getProgram } from './programs.ts'

/** Features to disable: Playwright's default list, which this flag replaces, and the address bar popup. */
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

/** The Chromium that all test files of a worker share. */
let shared: Promise<Browser> | undefined

/** Returns the worker's Chromium; `close` closes only the contexts opened through the returned object. */
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
