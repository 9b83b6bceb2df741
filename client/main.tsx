/**
 * Starts the console. Removes the sign-in secret from the address, installs the page guards and renders the
 * router.
 */
import '@mantine/core/styles.css'
import '@mantine/notifications/styles.css'
import './styles.css'
import { DirectionProvider, MantineProvider } from '@mantine/core'
import { Notifications } from '@mantine/notifications'
import { QueryClientProvider } from '@tanstack/react-query'
import { RouterProvider } from '@tanstack/react-router'
import { createRoot } from 'react-dom/client'
import { queryClient } from './api.ts'
import { guardPage, pageNonce } from './content-security-policy.ts'
import { createConsoleRouter } from './routes.tsx'
import { takeLink } from './session.ts'
import { prefetchPages } from './shell/page-scripts.ts'
import { direction, startLanguage } from './strings/language.ts'
import { colorSchemeManager, resolveVariables, theme } from './theme.ts'

takeLink()
guardPage()
void startLanguage().then(render)

/** Must be called after the language has loaded, because the rendered texts do not change afterwards. */
function render(): void {
  const router = createConsoleRouter()
  createRoot(document.querySelector('#root') as HTMLElement).render(
    <DirectionProvider initialDirection={direction()} detectDirection={false}>
      <MantineProvider
        theme={theme}
        defaultColorScheme="auto"
        colorSchemeManager={colorSchemeManager}
        cssVariablesResolver={resolveVariables}
        getStyleNonce={() => pageNonce}
      >
        <Notifications position={direction() === 'rtl' ? 'bottom-left' : 'bottom-right'} autoClose={6_000} />
        <QueryClientProvider client={queryClient}>
          <RouterProvider router={router} />
        </QueryClientProvider>
      </MantineProvider>
    </DirectionProvider>,
  )
  void prefetchPages(router)
}
