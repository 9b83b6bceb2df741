/** Starts the console: removes the sign-in secret from the address, installs the page guards and renders the router. */
import '@mantine/core/styles.css'
import '@mantine/notifications/styles.css'
import './styles.css'
import { MantineProvider } from '@mantine/core'
import { Notifications } from '@mantine/notifications'
import { QueryClientProvider } from '@tanstack/react-query'
import { RouterProvider } from '@tanstack/react-router'
import { createRoot } from 'react-dom/client'
import { queryClient } from './api.ts'
import { guardPage, pageNonce } from './content-security-policy.ts'
import { createConsoleRouter } from './routes.tsx'
import { takeLink } from './session.ts'
import { prefetchPages } from './shell/page-scripts.ts'
import { colorSchemeManager, resolveVariables, theme } from './theme.ts'

takeLink()
guardPage()
const router = createConsoleRouter()

createRoot(document.querySelector('#root') as HTMLElement).render(
  <MantineProvider
    theme={theme}
    defaultColorScheme="auto"
    colorSchemeManager={colorSchemeManager}
    cssVariablesResolver={resolveVariables}
    getStyleNonce={() => pageNonce}
  >
    <Notifications position="bottom-right" autoClose={6_000} />
    <QueryClientProvider client={queryClient}>
      <RouterProvider router={router} />
    </QueryClientProvider>
  </MantineProvider>,
)

prefetchPages(router)
