import { launchBrowser } from '/work/look/test/support/browser.ts'
import { openInstallation } from '/work/look/test/support/console-installation.ts'
import { listViews, openView } from '/work/look/test/support/console-tour.ts'
import { createWindow, signIn } from '/work/look/test/support/console-ui.ts'
const only = process.argv.slice(2)
const browser = await launchBrowser()
const installation = await openInstallation()
try {
  const { page } = await createWindow(installation.app, browser)
  await signIn(installation.app, page)
  for (const view of [...listViews(installation), { name: 'design', path: '/_design', ready: (p) => p.getByText('Empty and loading') }]) {
    if (only.length && !only.includes(view.name)) continue
    for (const [scheme, width, height] of [['light', 1440, 900], ['dark', 1440, 900], ['light', 390, 844], ['dark', 390, 844]] as const) {
      await page.setViewportSize({ width, height }); await page.emulateMedia({ colorScheme: scheme })
      try { await openView(page, installation.app.url, view) } catch (e) { console.log(view.name, scheme, width, String(e).slice(0, 200)) }
      await page.waitForTimeout(300)
      await page.screenshot({ path: `/tmp/h5/tour/${view.name}-${scheme}-${width}.png` })
    }
  }
} finally { await installation.close(); await browser.close() }
