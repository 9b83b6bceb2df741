/** The console: takes the one-time link out of the address, sets the page's guards, and shows the page that the address names. */
import '@mantine/core/styles.css'
import './styles.css'
import { MantineProvider } from '@mantine/core'
import { QueryClientProvider } from '@tanstack/react-query'
import { RouterProvider } from '@tanstack/react-router'
import { createRoot } from 'react-dom/client'
import { queryClient } from './api.ts'
import { guardPage, pageNonce } from './content-security-policy.ts'
import { createConsoleRouter } from './routes.tsx'
import { takeLink } from './session.ts'
import { colorSchemeManager, resolveVariables, theme } from './theme.ts'

takeLink()
guardPage()

createRoot(document.querySelector('#root') as HTMLElement).render(
  <MantineProvider
    theme={theme}
    defaultColorScheme="auto"
    colorSchemeManager={colorSchemeManager}
    cssVariablesResolver={resolveVariables}
    getStyleNonce={() => pageNonce}
  >
    <QueryClientProvider client={queryClient}>
      <RouterProvider router={createConsoleRouter()} />
    </QueryClientProvider>
  </MantineProvider>,
)
