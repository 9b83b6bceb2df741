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

/** Starts a headless Chromium; the test closes it. */
export async function launchBrowser(): Promise<Browser> {
  return chromium.launch({
    executablePath: getProgram('chromium'),
    args: [
      '--no-sandbox',
      '--disable-gpu',
      '--disable-background-networking',
      `--disable-features=${unneeded.join()}`,
    ],
  })
}
